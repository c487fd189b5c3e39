package place

import (
	"cmp"
	"math"
	"slices"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/mapper/predict"
)

// firstReady returns the GPUs, all of one machine, that are expected to be ready first
// for a task, and the instant at which the last of them is ready.
func (pl *Placer) firstReady(t *model.Task) (best []*model.GPU, at units.Instant) {
	type ready struct {
		g  *model.GPU
		at units.Instant
	}
	at = units.Never
	var all []ready
	for rest := pl.GPUList(); len(rest) > 0; {
		node := rest[0].Node
		all = all[:0]
		for len(rest) > 0 && rest[0].Node == node {
			if r := pl.readyAt(t, rest[0], at); r < at {
				all = append(all, ready{rest[0], r})
			}
			rest = rest[1:]
		}
		slices.SortStableFunc(all, func(a, b ready) int { return cmp.Compare(a.at, b.at) })
		if len(all) < t.GPUs || all[t.GPUs-1].at >= at {
			continue
		}
		best, at = nil, all[t.GPUs-1].at
		for _, r := range all[:t.GPUs] {
			best = append(best, r.g)
		}
	}
	return best, at
}

// readyAt returns the instant at which a GPU is expected to have room for a task, or
// units.Never if that is not before the given instant. It assumes that the residents end
// one after the other, as forecast.
func (pl *Placer) readyAt(t *model.Task, g *model.GPU, before units.Instant) units.Instant {
	if pl.RoomFor(t, g) < max(t.NeedOn(g), 1) || pl.reserve.IsReserved(t, g) {
		return units.Never
	}
	m, fills := pl.scorer.memo(g), pl.Options().FillHeld && t.GPUs > 1 // some may be suspended for it
	if !fills && pl.FreeMemory(g) < t.NeedOn(g) && m.firstEnd() >= before {
		return units.Never // a resident must end first: this answers for most GPUs of a cluster
	}
	of := roomQuery{m.version, g.Version(), pl.candidatesOf(t)[0], t.NeedOn(g)}
	if k := &cacheOf(g).ready; !fills && k.roomQuery == of && (!k.later || k.at >= before) {
		return k.known()
	}
	at := pl.readyIn(t, g, m, before, fills)
	if !fills {
		cacheOf(g).ready = at
		cacheOf(g).ready.roomQuery = of
	}
	return at.known()
}

// gpuReadyTime is the cached result of readyAt for a query, because a task that waits for
// GPUs asks again in each scheduling cycle.
type gpuReadyTime struct {
	roomQuery
	at    units.Instant
	later bool // the room comes at this instant or later
}

// roomQuery is the cache key of gpuReadyTime.
type roomQuery struct {
	version uint64 // of the forecast
	marks   int    // the changes of the GPU
	ask     int
	needs   units.Bytes
}

func (r *gpuReadyTime) known() units.Instant {
	if r.later {
		return units.Never
	}
	return r.at
}

// readyIn computes readyAt from the forecast. If the room comes too late, it returns the
// earliest instant at which it may come.
func (pl *Placer) readyIn(t *model.Task, g *model.GPU, m *memo, before units.Instant, fills bool) gpuReadyTime {
	free, gone := pl.FreeMemory(g), 0.0
	there := append(pl.there[:0], m.parts...)
	pl.there = there
	slices.SortStableFunc(there, func(a, b predict.TaskForecast) int { return cmp.Compare(a.Finish, b.Finish) })
	if fills {
		there = slices.DeleteFunc(there, func(p predict.TaskForecast) bool {
			r := g.Resident(p.Task)
			if r == nil || !pl.reserve.VacatesFor(t, r) {
				return false
			}
			free += r.Taken()
			return true
		})
	}
	ask := &pl.scorer.candidates.all[pl.candidatesOf(t)[0]]
	for ours(there) {
		if free >= t.NeedOn(g) {
			if pl.scorer.beside(g, there, ask, true).no.rule == "" {
				break
			}
		}
		if gone = there[0].Finish; m.after(gone) >= before {
			return gpuReadyTime{at: m.after(gone), later: true}
		}
		if r := g.Resident(there[0].Task); r != nil {
			free += r.Taken()
		}
		there = there[1:]
		for i := range there { // closer to their end by then
			there[i].Left = max(1, there[i].Left*(1-gone/max(gone, there[i].Finish)))
		}
	}
	return gpuReadyTime{at: m.after(gone)}
}

// ours reports whether any of some parts is a task.
func ours(parts []predict.TaskForecast) bool {
	for i := range parts {
		if parts[i].Task != 0 {
			return true
		}
	}
	return false
}

// after returns the instant that many seconds after the instant of the forecast.
func (m *memo) after(seconds float64) units.Instant {
	if math.IsInf(seconds, 0) {
		return units.Never
	}
	return m.at.Add(time.Duration(min(seconds, 1e9) * float64(time.Second)))
}

// firstEnd returns the first forecast end on a GPU with tasks, or m.at without tasks.
func (m *memo) firstEnd() units.Instant {
	if m.ends != 0 {
		return m.ends
	}
	first := math.Inf(1)
	for i := range m.parts {
		first = min(first, m.parts[i].Finish)
	}
	if !ours(m.parts) {
		first = 0
	}
	m.ends = m.after(first)
	return m.ends
}

// endsInTime reports whether a task, placed on a reserved GPU, is expected to end before
// the favoured task needs the GPU.
func (pl *Placer) endsInTime(t *model.Task, g *model.GPU) bool {
	if t.GPUs > 1 || pl.RunsAlone(t) {
		return false
	}
	a := pl.scorer.score(g, pl.candidatesOf(t)[0])
	return pl.Now().Add(time.Duration(min(a.finish, 1e9)*float64(time.Second))) <= pl.reserve.Head().Until
}

// TakesAt returns the instant at which a GPU is expected to take a task, as its residents
// end one after the other.
func (pl *Placer) TakesAt(t *model.Task, g *model.GPU) units.Instant {
	if pl.Predicts() {
		return pl.readyAt(t, g, units.Never)
	}
	after := g.Clone()
	there := slices.Clone(pl.scorer.memo(g).parts)
	slices.SortStableFunc(there, func(a, b predict.TaskForecast) int { return cmp.Compare(a.Finish, b.Finish) })
	gone := 0.0
	for pl.Reject(t, after) != "" {
		if len(there) == 0 || math.IsInf(there[0].Finish, 0) {
			return units.Never
		}
		gone = there[0].Finish
		after.RemoveTask(there[0].Task)
		there = there[1:]
	}
	return pl.Now().Add(time.Duration(min(gone, 1e9) * float64(time.Second)))
}
