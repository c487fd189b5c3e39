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
	"carma/runner/suspend/support"
)

func (g *rig) saysSuspending() api.Check { return g.doctorRow("suspending tasks") }

// doctorRow returns the check of doctor with a name.
func (g *rig) doctorRow(name string) (c api.Check) {
	g.t.Helper()
	checks, err := g.api.Doctor(g.ctx())
	if err != nil {
		g.t.Fatal(err)
	}
	for _, c := range checks {
		if c.Name == name {
			return c
		}
	}
	g.t.Fatalf("doctor says nothing of %s: %+v", name, checks)
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
		how        *support.Options
		want, mend string
	}{
		{"nobody to do it", mine, nil, "GPU 0, 1: no: carma cannot suspend tasks on cards", ""},
		{"off", mine, &support.Options{Driver: "580.65", Arch: "amd64", Off: true}, "no: suspend is off in the configuration", ""},
		{"an old driver", mine, &support.Options{Driver: "550.54", Arch: "amd64"}, "no: the NVIDIA driver is 550.54; suspending needs 570 or newer", "install NVIDIA driver 580 or newer"},
		{"no move", mine, &support.Options{Driver: "575.1", Arch: "amd64", Move: true}, "GPU 0, 1: yes, back to the same GPU (the NVIDIA driver is 575.1; moving to another GPU needs 580 or newer)", ""},
		{"move", mine, &support.Options{Driver: "580.65", Arch: "amd64", Move: true}, "yes, and they may come back to another GPU of the same model", ""},
		{"arm64", mine, &support.Options{Driver: "580.65", Arch: "arm64"}, "no: the NVIDIA driver suspends processes on x86-64 only; this machine is arm64", ""},
		{"no cgo", mine, &support.Options{Driver: "580.65", Arch: "amd64", Ready: func(context.Context) error {
			return &suspend.Unavailable{Why: "this carma was built without cgo, which loads the NVIDIA driver's library"}
		}}, "no: suspending is not possible here: this carma was built without cgo", "CGO_ENABLED=1 make build"},
		{"no freezer", other, &support.Options{Driver: "580.65", Arch: "amd64"}, "no: the kernel has no control groups that freeze containers", "mount /sys/fs/cgroup"},
	} {
		t.Run(row.name, func(t *testing.T) {
			g := newRig(t, func(g *rig) { g.opt.Suspending, g.proc = row.how, row.root })
			if row.how != nil && row.how.Ready != nil {
				g.eventually("an answer", func() bool { return !strings.Contains(g.saysSuspending().Detail, "has not answered yet") })
			}
			if c := g.saysSuspending(); c.Status != "ok" || !strings.Contains(c.Detail, row.want) || (row.mend == "") != (c.Fix == "") || !strings.Contains(c.Fix, row.mend) {
				t.Errorf("%+v; want %q, to mend: %q", c, row.want, row.mend)
			}
		})
	}
}
