//go:build failpoints

package runner

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"carma/containers/containerstest"
	"carma/internal/failpoint"
	"carma/mapper/model"
	"carma/runner/api"
)

// TestRemovalThatFails: a container does not start, and the engine does not remove it either.
// Its task is delayed by only a few minutes, can be stopped, and runs when the engine works
// again.
func TestRemovalThatFails(t *testing.T) {
	defer failpoint.Set(func(string, bool) error { return nil })
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, dir, 1, nil)
		defer w.engine.Shutdown()
		w.start("", 0)
		refused := errors.New("no space left on device")
		w.engine.FailAll(containerstest.OpStart, refused)
		w.engine.FailAll(containerstest.OpRemove, refused)
		var ids []int64
		for range 2 {
			made, err := w.life.admission.Submit(context.Background(), root, api.Submit{Image: "short", Mem: 1 << 30})
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, made.ID)
		}
		time.Sleep(10 * time.Minute)
		for _, id := range ids {
			rec, err := w.life.find.Find(model.TaskID(id).String())
			if err != nil || len(rec.Task.Attempts) < 2 || rec.Task.Attempts[0].Ended == 0 {
				t.Errorf("after ten minutes the task %d is %s: %+v, %v", id, rec.Task.Phase, rec.Task.Attempts, err)
			}
		}
		if _, err := w.life.control.Stop(context.Background(), root, model.TaskID(ids[0]).String(), api.StopRequest{}); err != nil {
			t.Error(err)
		}
		time.Sleep(10 * time.Minute)
		if rec, err := w.life.find.Find(model.TaskID(ids[0]).String()); err != nil || rec.Task.Phase != model.Cancelled {
			t.Errorf("the stopped task is %s, %v", rec.Task.Phase, err)
		}
		w.engine.FailAll(containerstest.OpStart, nil)
		w.engine.FailAll(containerstest.OpRemove, nil)
		time.Sleep(time.Hour)
		if rec, err := w.life.find.Find(model.TaskID(ids[1]).String()); err != nil || rec.Task.Phase != model.Succeeded {
			t.Errorf("the other task is %s (%v), %v", rec.Task.Phase, rec.Task.Reason, err)
		}
		w.end()
	})
}
