package mapper

import (
	"slices"
	"time"

	"carma/mapper/model"
	"carma/mapper/predict"
)

// A placement that turns out to slow a task down beyond the cap is undone: the task that
// came last returns to the queue, if it has not done much yet. By then its activity and
// its effect on its neighbours are known, so it is not placed in the same way again.
const (
	undoWithin = 10 * time.Minute // of its start
	undoMost   = 2                // times for one task
	// A slowdown must exceed the cap by undoMargin, and eviction must reduce it by at
	// least undoGain.
	undoMargin = 0.05
	undoGain   = 0.1
)

// evictSlowing evicts the task that came last to a GPU if it slows another one down too
// much.
func (pre *preempter) evictSlowing(g *model.GPU) {
	if !pre.placer.Predicts() || len(g.Residents) < 2 {
		return
	}
	last := pre.TaskByID(g.Residents[len(g.Residents)-1].Task)
	if last.Phase != model.Running || last.Evictions >= undoMost || pre.Now() > max(last.Last().Started, last.Last().Back).Add(undoWithin) {
		return
	}
	there := late(pre.placer.Forecasts(g))
	without := make([]predict.TaskForecast, 0, len(there))
	for _, p := range there {
		if p.Task != last.ID {
			without = append(without, p)
		}
	}
	pre.predictor.SharingMode(g).Forecast(there, nil)
	pre.predictor.SharingMode(g).Forecast(without, nil)
	for _, after := range without {
		for _, now := range there {
			if now.Task == after.Task && now.Task != 0 && now.SlowdownForCap() > pre.predictor.SlowdownCap()+undoMargin && after.SlowdownForCap() < now.SlowdownForCap()-undoGain {
				why := model.Reason{Code: model.ReasonSlowing, Task: now.Task, GPU: g.Index, Percent: int(100 * now.SlowdownForCap())}
				pre.evict(last, why)
				return
			}
		}
	}
}

// evict suspends or stops a task that slows a neighbour down. A task that was suspended
// and has just resumed has done too much work to be stopped.
func (pre *preempter) evict(t *model.Task, why model.Reason) {
	if pre.canPreempt(t, why.Code) && pre.goesElsewhere(t, func(*model.GPU) bool { return true }) {
		if pre.Now() < pre.RestedAt(t.Last()) || pre.preemptTask(t, why) {
			return
		}
	}
	if pre.Now() <= t.Last().Started.Add(undoWithin).Add(pre.suspendedTime(t)) {
		pre.stopVictim(t, why)
	}
}

// late returns the same tasks with their remaining work multiplied by the typical lateness
// where the run time is not known. Expected times would hide how long a task stays slow
// beside an unknown one.
func late(parts []predict.TaskForecast) []predict.TaskForecast {
	later := slices.Clone(parts)
	for i := range later {
		if later[i].Basis != predict.Known {
			later[i].Left *= predict.Typical.Lateness()
		}
	}
	return later
}

// evicted requeues a task after its attempt was stopped for slowing others down.
func (s *State) evicted(t *model.Task, a *model.Attempt) {
	reason := t.StopReason
	a.NotAtFault = true
	t.Moving, t.StopReason = false, model.Reason{}
	t.Evictions++
	s.requeue(t, model.Recovering, reason)
}
