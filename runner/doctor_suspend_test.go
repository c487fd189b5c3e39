package runner

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"carma/runner/api"
	"carma/runner/suspend"
)

func (g *rig) saysSuspending() (c api.Check) {
	g.t.Helper()
	checks, err := g.api.Doctor(g.ctx())
	if err != nil {
		g.t.Fatal(err)
	}
	for _, c := range checks {
		if c.Name == "suspending tasks" {
			return c
		}
	}
	g.t.Fatalf("doctor says nothing of it: %+v", checks)
	return c
}

// TestDoctorSuspending checks that doctor shows whether tasks can be suspended, the reason if
// not, and the fix.
func TestDoctorSuspending(t *testing.T) {
	mine := t.TempDir() // a machine with visible processes and control groups
	if err := errors.Join(os.MkdirAll(filepath.Join(mine, "proc"), 0o755), os.MkdirAll(filepath.Join(mine, "sys/fs/cgroup"), 0o755), os.WriteFile(filepath.Join(mine, "sys/fs/cgroup/cgroup.controllers"), nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	other := t.TempDir()
	for _, row := range []struct {
		name, root string
		how        *Suspending
		want, mend string
	}{
		{"nobody to do it", mine, nil, "GPU 0, 1: no: carma cannot suspend tasks on cards", ""},
		{"off", mine, &Suspending{Driver: "580.65", Arch: "amd64", Off: true}, "no: suspend is off in the configuration", ""},
		{"an old driver", mine, &Suspending{Driver: "550.54", Arch: "amd64"}, "no: the NVIDIA driver is 550.54; suspending needs 570 or newer", "install NVIDIA driver 580 or newer"},
		{"no move", mine, &Suspending{Driver: "575.1", Arch: "amd64", Move: true}, "GPU 0, 1: yes, back to the same GPU (the NVIDIA driver is 575.1; moving to another GPU needs 580 or newer)", ""},
		{"move", mine, &Suspending{Driver: "580.65", Arch: "amd64", Move: true}, "yes, and they may come back to another GPU of the same model", ""},
		{"arm64", mine, &Suspending{Driver: "580.65", Arch: "arm64"}, "no: the NVIDIA driver suspends processes on x86-64 only; this machine is arm64", ""},
		{"no cgo", mine, &Suspending{Driver: "580.65", Arch: "amd64", Ready: func(context.Context) error {
			return &suspend.Unavailable{Why: "this carma was built without cgo, which loads the NVIDIA driver's library"}
		}}, "no: suspending is not possible here: this carma was built without cgo", "CGO_ENABLED=1 make build"},
		{"no freezer", other, &Suspending{Driver: "580.65", Arch: "amd64"}, "no: the kernel has no control groups that freeze containers", "mount /sys/fs/cgroup"},
	} {
		t.Run(row.name, func(t *testing.T) {
			g := newRig(t, func(g *rig) { g.opt.Suspending, g.proc = row.how, row.root })
			if row.how != nil && row.how.Ready != nil {
				g.eventually("an answer", func() bool { _, why := g.Runner.ready.get(); return why != notAsked })
			}
			if c := g.saysSuspending(); c.Status != "ok" || !strings.Contains(c.Detail, row.want) || (row.mend == "") != (c.Fix == "") || !strings.Contains(c.Fix, row.mend) {
				t.Errorf("%+v; want %q, to mend: %q", c, row.want, row.mend)
			}
		})
	}
	if why, _ := lacks(1000, mine); !strings.Contains(why, "is not root") {
		t.Errorf("another user: %q", why)
	}
	if why, mend := lacks(0, mine); why != "" || mend != "" {
		t.Errorf("all is there: %q, %q", why, mend)
	}
	if err := errors.Join(os.MkdirAll(filepath.Join(other, "proc/self/ns"), 0o755), os.Symlink("pid:[4026539999]", filepath.Join(other, "proc/self/ns/pid"))); err != nil {
		t.Fatal(err)
	}
	if why, _ := lacks(0, other); !strings.Contains(why, "PID namespace of its own") {
		t.Errorf("in a namespace: %q", why)
	}
}
