package runner

import (
	"path/filepath"
	"slices"
	"testing"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/journal"
	"carma/runner/label"
	"carma/runner/suspend/leave"
)

// backup keeps a copy of the journal as it is now.
func (g *rig) backup() (file string) {
	g.t.Helper()
	file = filepath.Join(g.t.TempDir(), "backup.db")
	if _, _, err := journal.Backup(g.dir, file); err != nil {
		g.t.Fatal(err)
	}
	return file
}

// sameAttempt waits until a task runs on a GPU, and checks that this is its only attempt.
func (g *rig) sameAttempt(ref string, gpu model.GPUID) {
	g.t.Helper()
	g.inPhase(ref, model.Running)
	rec, err := g.find.Find(ref)
	if err != nil || len(rec.Task.Attempts) != 1 || rec.Task.Last().Grants[0].GPU != gpu {
		g.t.Errorf("task %s: %+v, %v", ref, rec.Task.Attempts, err)
	}
}

// TestFoundAway: the journal is replaced by a copy from before a task was suspended. The next
// daemon finds that the task is off its GPU. The task counts as suspended, and resumes without
// a request, in the same attempt.
func TestFoundAway(t *testing.T) {
	long(t)
	t.Run("known", func(t *testing.T) {
		g, s, ref := suspendable(t)
		file := g.backup()
		g.suspend(1)
		g.inPhase(ref, model.Suspended)
		g.stop()
		g.setBack(file, false)
		g.start()
		g.eventually("it is put back", func() bool { return len(s.said()) == 3 })
		g.sameAttempt(ref, "GPU-a")
		equal(t, "calls", s.said(), []string{"suspend 3.0 GiB", "recover to suspended []", "resume 7 []"})
		g.stopAndCancel(ref)
	})
	t.Run("its GPU was taken", func(t *testing.T) {
		g, s, ref := suspendable(t)
		file := g.backup()
		g.suspend(1)
		g.inPhase(ref, model.Suspended)
		next := g.run(api.Submit{Image: "stay", Mem: int64(3 * units.GiB)})
		if at := g.running(next).Attempts[0].GPUs; at[0].Index != 0 {
			t.Fatalf("the next task runs on %+v", at)
		}
		g.stop()
		g.setBack(file, true)
		g.start()
		g.eventually("it is put back", func() bool { return len(s.said()) == 3 })
		g.sameAttempt(ref, "GPU-b")
		g.sameAttempt(next, "GPU-a")
		equal(t, "calls", s.said(), []string{"suspend 3.0 GiB", "recover to suspended []", "resume 7 [{GPU-a GPU-b}]"})
	})
	t.Run("taken in", func(t *testing.T) {
		g, s, _ := suspendable(t)
		file := g.backup()
		ref := g.run(api.Submit{Image: "stay", Mem: int64(3 * units.GiB)})
		g.running(ref)
		g.suspend(2)
		g.inPhase(ref, model.Suspended)
		g.stop()
		g.setBack(file, true)
		g.start()
		g.eventually("it is put back", func() bool { return len(s.said()) == 3 })
		g.sameAttempt(ref, "GPU-b")
		equal(t, "calls", s.said(), []string{"suspend 3.0 GiB", "recover to suspended []", "resume 7 []"})
	})
	t.Run("left by itself", func(t *testing.T) {
		g, s, _ := suspendable(t, func(g *rig) {
			o := *g.opt.Suspending
			o.By = &leave.Asking{Driver: o.By.(leave.By)}
			g.opt.Suspending = &o
		})
		g.script("leaves", leaves)
		ref := g.run(api.Submit{Image: "leaves", Mem: int64(2 * units.GiB), Env: []string{"CARMA_LEAVE=" + leaveTarget}})
		g.running(ref)
		g.eventually("the core knows", func() bool { rec, err := g.find.Find(ref); return err == nil && rec.Task.Last().Leaves })
		file := g.backup()
		g.suspend(2)
		g.inPhase(ref, model.Suspended)
		g.stop()
		g.setBack(file, false)
		g.start()
		folder := g.attemptDeps.VacateFolder(label.ContainerName(g.instance, 2, 1))
		g.eventually("it is asked to return", func() bool { return !folder.Left() })
		g.sameAttempt(ref, "GPU-b")
		if slices.Contains(s.said(), "thaw") || len(s.said()) > 0 {
			t.Errorf("calls of the driver: %q", s.said())
		}
	})
	t.Run("it runs", func(t *testing.T) {
		g, s, ref := suspendable(t)
		g.restart()
		g.sameAttempt(ref, "GPU-a")
		g.suspend(1) // after the check
		g.inPhase(ref, model.Suspended)
		equal(t, "calls", s.said(), []string{"suspend 3.0 GiB"})
	})
}
