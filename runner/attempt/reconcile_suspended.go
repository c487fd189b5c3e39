package attempt

import (
	"context"

	"carma/containers"
	"carma/mapper/model"
	"carma/runner/loop"
)

// detect reports to the core if the container of a running attempt is off its
// GPUs. That happens if the journal was restored from a copy made before the task was
// suspended. Without the report nobody would resume the task.
//
// On Docker a container that somebody has paused is left alone. Other engines call frozen
// containers paused, so there a paused container counts as suspended, and resumes.
func (s *suspension) detect(ctx context.Context, id string) {
	if s.adopted == nil || s.adopted.State != containers.StateRunning || s.deps.Suspending == nil || len(s.launch.Grants) == 0 || s.isTouched() {
		return
	}
	c := s.container(id)
	left := c.Leave != "" && s.deps.VacateFolder(s.containerName()).Left()
	frozen := false
	if !left && !s.adopted.Paused {
		short, cancel := context.WithTimeout(ctx, signalLimit)
		defer cancel()
		var err error
		if frozen, err = s.deps.Suspending.By.Frozen(short, c); err != nil && ctx.Err() == nil {
			s.deps.Log.Warn().Err(err).Int64("task", int64(s.launch.Task)).Msg("it cannot be seen whether the task's container is frozen")
		}
	}
	if !left && !frozen {
		return
	}
	s.touch()
	s.deps.Log.Warn().Int64("task", int64(s.launch.Task)).Bool("by_itself", left).Msg("a task that is thought to run is off its GPUs; it counts as suspended, and comes back")
	s.deps.Loop.Post(loop.Fact(model.SuspendedOutOfBand{At: s.deps.Clock.Now(), Task: s.launch.Task, Attempt: s.launch.Attempt, Left: left}))
}
