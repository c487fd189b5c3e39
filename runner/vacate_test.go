package runner

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"carma/containers"
	"carma/containers/containerstest"
	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/label"
	"carma/runner/suspend/leave"
)

const leaveTarget = "/run/carma-leave"

// leaves is a program that vacates its GPU on request, and uses it again later.
func leaves(ctx context.Context, p *containerstest.Process) int {
	i := slices.IndexFunc(p.Spec.Mounts, func(m containers.Mount) bool { return m.Target == leaveTarget })
	if i < 0 {
		return 9
	}
	dir := p.Spec.Mounts[i].Source
	say := func(name, line string) { _ = os.WriteFile(filepath.Join(dir, "task", name), []byte(line), 0o644) }
	say("offer", "carma-leave 1\n")
	for last := ""; ctx.Err() == nil; time.Sleep(time.Millisecond) {
		text, _ := os.ReadFile(filepath.Join(dir, "order"))
		if line := string(text); line != last {
			last = line
			say("answer", strings.NewReplacer("leave", "left", "return", "here").Replace(line))
		}
	}
	return 143
}

// TestLeavesByItself checks that a task that offers to vacate is asked to do so, also after a
// restart of the daemon, and that the driver is not used. Its folder is removed after its end.
func TestLeavesByItself(t *testing.T) {
	long(t)
	g, s, _ := suspendable(t, func(g *rig) {
		o := *g.opt.Suspending
		o.By, o.Move = &leave.Asking{Driver: o.By.(leave.By)}, false
		g.opt.Suspending = &o
	})
	g.script("leaves", leaves)
	ref := g.run(api.Submit{Image: "leaves", Mem: int64(2 * units.GiB), Env: []string{"CARMA_LEAVE=" + leaveTarget}})
	g.running(ref)
	folder := g.attemptDeps.VacateFolder(label.ContainerName(g.instance, 2, 1))
	g.eventually("it offers to leave", folder.Offered)
	g.eventually("the core knows", func() bool { rec, err := g.find.Find(ref); return err == nil && rec.Task.Last().Leaves })
	g.suspend(2)
	g.inPhase(ref, model.Suspended)
	g.restart()
	g.inPhase(ref, model.Suspended)
	g.resumeTask(2)
	g.inPhase(ref, model.Running)
	if text, err := os.ReadFile(filepath.Join(string(folder), "order")); string(text) != "return 2\n" {
		t.Errorf("the last order: %q, %v", text, err)
	}
	equal(t, "calls of the driver", s.said(), nil)
	if _, err := g.api.Stop(g.ctx(), ref, api.StopRequest{}); err != nil {
		t.Fatal(err)
	}
	g.finished(ref)
	g.eventually("its folder is removed", func() bool { _, err := os.Stat(string(folder)); return os.IsNotExist(err) })
	g.suspend(1) // a task that offers nothing
	g.eventually("the driver is called", func() bool { return fmt.Sprint(s.said()) == "[thaw suspend 3.0 GiB]" })
}
