package runner

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"carma/internal/units"
	"carma/runner/api"
	"carma/runner/journal"
)

// olderCopy returns a rig with running tasks 1 and 2 and the journal of a time
// when there was only task 1. The engine is down.
func olderCopy(t *testing.T, acceptLoss bool) (*rig, *gated) {
	g := newRig(t, byMemory)
	p := g.gated("train")
	g.running(g.run(api.Submit{Image: "train", Mem: int64(4 * units.GiB)}))
	file := filepath.Join(t.TempDir(), "backup.db")
	if _, _, err := journal.Backup(g.dir, file); err != nil {
		t.Fatal(err)
	}
	g.running(g.run(api.Submit{Image: "train", Name: "newer", Mem: int64(4 * units.GiB)}))
	g.stop()
	g.setBack(file, acceptLoss)
	g.engine.Down()
	return g, p
}

// TestNewerWhenEngineComesBack: the engine is down at the start, so the containers are compared
// with the journal when it answers. Nothing is launched before, nor afterwards if a container
// is newer. Running tasks continue. TestNameTaken covers a new task whose container name is
// taken.
func TestNewerWhenEngineComesBack(t *testing.T) {
	long(t)
	g, p := olderCopy(t, false)
	g.start()
	waits := g.run(api.Submit{Image: "train", Mem: int64(units.GiB)})
	g.engine.Up()
	g.eventually("readyz tells of the newer container", func() bool {
		status, body := g.get("/readyz")
		return status == 503 && strings.Contains(body, "containers are newer than the journal") &&
			strings.Contains(body, "to mend it: stop the daemon, then carma journal repair --accept-loss --data-dir "+g.dir)
	})
	checks := g.Doctor(g.ctx())
	if !slices.ContainsFunc(checks, func(c api.Check) bool {
		return c.Status == "failure" && strings.Contains(c.Detail, "newer than the journal") && strings.Contains(c.Fix, "repair --accept-loss")
	}) {
		t.Errorf("doctor: %+v", checks)
	}
	g.running("1")
	g.engine.Down() // the engine goes down and comes back, and the refusal stays
	g.eventually("the engine is down", func() bool { up, _ := g.Runner.engine.Status(); return !up })
	g.engine.Up()
	g.eventually("readyz tells of it again", func() bool {
		_, body := g.get("/readyz")
		return strings.Contains(body, "containers are newer than the journal")
	})
	if n := p.starts.Load(); n != 2 {
		t.Errorf("%d starts, want the 2 of before", n)
	}
	if now := g.labelled(); !slices.Equal(now, []string{"1.1 running", "2.1 running"}) {
		t.Errorf("containers: %v", now)
	}

	g.stop()
	if _, err := journal.Repair(g.dir, journal.RepairOptions{Do: true, AcceptLoss: true}); err != nil {
		t.Fatal(err)
	}
	g.start()
	g.running("2")
	g.running(waits)
	close(p.gate)
	for _, ref := range []string{"1", "2", waits} {
		if task := g.finished(ref); task.Phase != "succeeded" {
			t.Errorf("task %s: %s (%v), attempts %+v", ref, task.Phase, task.Reason, task.Attempts)
		}
	}
	if n := p.starts.Load(); n != 3 {
		t.Errorf("%d starts, want 3", n)
	}
}

// TestAcceptLossWithEngineDown: an accepted loss remains accepted after a start at which the
// containers could not be listed.
func TestAcceptLossWithEngineDown(t *testing.T) {
	long(t)
	g, p := olderCopy(t, true)
	g.start()
	g.restart() // still down
	g.engine.Up()
	g.eventually("task 2 is taken in", func() bool { _, err := g.api.Task(g.ctx(), "2"); return err == nil })
	if task := g.running("2"); task.Name != "newer" {
		t.Errorf("task 2 is %+v", task)
	}
	if third := g.run(api.Submit{Image: "train", Mem: int64(units.GiB)}); third != "3" {
		t.Errorf("the next task is %s, want 3", third)
	}
	g.running("3")
	close(p.gate)
	for _, ref := range []string{"1", "2", "3"} {
		if task := g.finished(ref); task.Phase != "succeeded" || len(task.Attempts) != 1 {
			t.Errorf("task %s: %s (%v), attempts %+v", ref, task.Phase, task.Reason, task.Attempts)
		}
	}
	if n := p.starts.Load(); n != 3 {
		t.Errorf("%d starts, want 3", n)
	}
}
