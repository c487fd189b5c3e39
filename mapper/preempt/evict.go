package preempt

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
	EvictWithin = 10 * time.Minute // of its start
	EvictMost   = 2                // times for one task
	// A slowdown must exceed the cap by EvictMargin, and eviction must reduce it by at
	// least evictGain.
	EvictMargin = 0.05
	evictGain   = 0.1
)

// EvictSlowing evicts the task that came last to a GPU if it slows another one down too
// much.
func (pre *Preempter) EvictSlowing(g *model.GPU) {
	if !pre.placer.Predicts() || len(g.Residents) < 2 {
		return
	}
	last := pre.TaskByID(g.Residents[len(g.Residents)-1].Task)
	if last.Phase != model.Running || last.Evictions >= EvictMost || pre.Now() > max(last.Last().Started, last.Last().Back).Add(EvictWithin) {
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
			if now.Task == after.Task && now.Task != 0 && now.SlowdownForCap() > pre.predictor.SlowdownCap()+EvictMargin && after.SlowdownForCap() < now.SlowdownForCap()-evictGain {
				why := model.Reason{Code: model.ReasonSlowing, Task: now.Task, GPU: g.Index, Percent: int(100 * now.SlowdownForCap())}
				pre.evict(last, why)
				return
			}
		}
	}
}

// evict suspends or stops a task that slows a neighbour down. A task that was suspended
// and has just resumed has done too much work to be stopped.
func (pre *Preempter) evict(t *model.Task, why model.Reason) {
	if pre.canSuspend(t, why.Code) && pre.goesElsewhere(t, func(*model.GPU) bool { return true }) {
		if pre.Now() < pre.RestedAt(t.Last()) || pre.displace(displacement{t, why, suspendOnly}) {
			return
		}
	}
	if pre.Now() <= t.Last().Started.Add(EvictWithin).Add(pre.suspendedTime(t)) {
		pre.displace(displacement{t, why, stopOnly})
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
