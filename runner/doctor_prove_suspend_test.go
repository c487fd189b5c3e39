package runner

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"carma/containers/containerstest"
	"carma/runner/api"
	"carma/runner/doctor"
	"carma/runner/suspend"
	"carma/runner/suspend/support"
)

// proofs returns the checks about suspending in the result of a proof in an image.
func (g *rig) proofs(image string) (all []api.Check) {
	g.t.Helper()
	checks, err := g.api.Prove(g.ctx(), image)
	if err != nil {
		g.t.Fatal(err)
	}
	for _, c := range checks {
		if strings.Contains(c.Name, "suspending") {
			all = append(all, c)
		}
	}
	return all
}

// looking simulates the program of the proof. It checks its memory until it is stopped, but not
// while it is frozen. Its last line arrives after it was frozen.
func looking(frozen func() bool, after string) containerstest.Script {
	return func(ctx context.Context, p *containerstest.Process) int {
		if strings.Join(p.Spec.Entrypoint, " ") != doctor.ProgramTarget+" "+suspend.ProgramCommand {
			return showing("smi not found")(ctx, p)
		}
		p.Out("%s %d", suspend.ProgramReady, suspend.ProgramBytes)
		for n, was := 1, false; ; n++ {
			if frozen() {
				if !was {
					time.Sleep(20 * time.Millisecond)
					p.Out("%s %d", suspend.ProgramGood, n)
				}
				was = true
			} else if was && after != "" {
				p.Out("%s", after)
				return 1
			} else {
				p.Out("%s %d", suspend.ProgramGood, n)
			}
			select {
			case <-ctx.Done():
				return 143
			case <-p.Killed:
				return 137
			case <-time.After(5 * time.Millisecond):
			}
		}
	}
}

// TestProveSuspending: the proof on each idle GPU reports the observations or the error,
// and leaves no container.
func TestProveSuspending(t *testing.T) {
	long(t)
	s := &shelf{off: map[string]bool{}}
	var thaws atomic.Bool // simulates a container that is not frozen
	frozen := func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, off := range s.off {
			if off {
				return !thaws.Load()
			}
		}
		return false
	}
	g := newRig(t, byMemory, func(g *rig) {
		g.opt.Suspending, g.opt.Init = &support.Options{By: s, Driver: "580.65", Arch: "amd64"}, "/proc/self/exe"
	})
	if err := support.MaySuspend(); err != nil {
		t.Skipf("nothing is tried on this machine: %v", err)
	}
	g.script("good", looking(frozen, ""))
	g.script("changed", looking(frozen, suspend.ProgramBad+" word 7 of its GPU memory was 0x1 and is 0x2"))
	g.script("musl", func(ctx context.Context, p *containerstest.Process) int {
		if p.Spec.Entrypoint[0] == doctor.ProgramTarget {
			p.Out("exec /.carma/carma: no such file or directory")
			return 127
		}
		return showing("smi not found")(ctx, p)
	})
	for _, row := range []struct{ image, status, want string }{
		{"good", "ok", "a program with 64 MiB left it in "},
		{"good", "ok", "came back in 0s and found its memory unchanged"},
		{"changed", "failure", "after it came back: word 7 of its GPU memory was 0x1 and is 0x2"},
		{"musl", "warning", "does not run in this image: it has ended: exec /.carma/carma: no such file or directory"},
	} {
		all := g.proofs(row.image)
		if len(all) != 2 || all[0].Name != "suspending on GPU 0" || all[1].Name != "suspending on GPU 1" {
			t.Fatalf("%s: %+v", row.image, all)
		}
		for _, c := range all {
			if c.Status != row.status || !strings.Contains(c.Detail, row.want) {
				t.Errorf("%s: %+v, want %s %q", row.image, c, row.status, row.want)
			}
		}
		s.mu.Lock()
		clear(s.off)
		s.mu.Unlock()
	}
	thaws.Store(true)
	if c := g.proofs("good")[0]; c.Status != "failure" || !strings.Contains(c.Detail, "the suspended program went on") {
		t.Errorf("not frozen: %+v", c)
	}
	thaws.Store(false)
	s.mu.Lock()
	clear(s.off)
	s.mu.Unlock()
	s.fail(suspend.Runs, errors.New("the driver said no"))
	if c := g.proofs("good")[0]; c.Status != "failure" || !strings.Contains(c.Detail, "the driver said no") {
		t.Errorf("refused: %+v", c)
	}
	g.script("stay", untilStopped)
	ref := g.run(api.Submit{Image: "stay", Mem: 1 << 30})
	gpu := g.running(ref).Attempts[0].GPUs[0].Index
	if c := g.proofs("good")[gpu]; c.Name != "proof of suspending" || c.Status != "ok" || !strings.Contains(c.Detail, fmt.Sprintf("not tried on GPU %d: it is in use", gpu)) {
		t.Errorf("beside a task: %+v", c)
	}
	if n := len(g.containers()); n != 1 {
		t.Errorf("%d containers are left, want that of the task", n)
	}
}

// TestProveSuspendingNot checks that the proof reports that suspending is impossible, and does
// not try it.
func TestProveSuspendingNot(t *testing.T) {
	g := newRig(t, func(g *rig) {
		g.opt.Suspending, g.opt.Init = &support.Options{By: &shelf{}, Driver: "550.54", Arch: "amd64"}, "/proc/self/exe"
	})
	g.script("any", showing("smi not found"))
	all := g.proofs("any")
	if len(all) != 2 || all[1].Status != "ok" || all[1].Detail != "not tried on GPU 1: the NVIDIA driver is 550.54; suspending needs 570 or newer" {
		t.Errorf("%+v", all)
	}
}
