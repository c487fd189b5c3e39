package runner

import (
	"context"

	"carma/containers"
	"carma/mapper/model"
	"carma/runner/loop"
)

// detectSuspended reports to the core if the container of a running attempt is off its
// GPUs. That happens if the journal was restored from a copy made before the task was
// suspended. Without the report nobody would resume the task.
//
// On Docker a container that somebody has paused is left alone. Other engines call frozen
// containers paused, so there a paused container counts as suspended, and resumes.
func (w *worker) detectSuspended(ctx context.Context, id string) {
	if w.adopted == nil || w.adopted.State != containers.StateRunning || w.deps.Suspending == nil || len(w.launch.Grants) == 0 || w.isTouched() {
		return
	}
	c := w.container(id)
	left := c.Leave != "" && w.deps.VacateFolder(w.containerName()).Left()
	frozen := false
	if !left && !w.adopted.Paused {
		short, cancel := context.WithTimeout(ctx, signalLimit)
		defer cancel()
		var err error
		if frozen, err = w.deps.Suspending.By.Frozen(short, c); err != nil && ctx.Err() == nil {
			w.deps.Log.Warn().Err(err).Int64("task", int64(w.launch.Task)).Msg("it cannot be seen whether the task's container is frozen")
		}
	}
	if !left && !frozen {
		return
	}
	w.touch()
	w.deps.Log.Warn().Int64("task", int64(w.launch.Task)).Bool("by_itself", left).Msg("a task that is thought to run is off its GPUs; it counts as suspended, and comes back")
	w.deps.Loop.Post(loop.Fact(model.SuspendedOutOfBand{At: w.deps.Clock.Now(), Task: w.launch.Task, Attempt: w.launch.Attempt, Left: left}))
}
