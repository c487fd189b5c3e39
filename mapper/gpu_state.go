package mapper

import (
	"slices"

	"carma/internal/units"
	"carma/mapper/model"
)

// gpuState holds everything about a GPU on which its answer to a pending task depends.
type gpuState struct {
	rule    model.Rule
	free    units.Bytes
	foreign units.Bytes
	changes int
	at      units.Instant
	extra   float64
	untold  model.TaskID
	claim   model.TaskID
}

// markChanged finds the GPUs that have changed since the previous scheduling cycle.
func (pl *placer) markChanged() {
	before := pl.cache.began
	pl.cache.clock++
	pl.cache.began = pl.cache.clock
	l := &pl.cache.dirty
	recent, whole := l.recent, !l.valid
	if whole {
		recent = slices.Clone(pl.GPUList())
	}
	for _, g := range pl.refreshDirty() {
		if f := pl.gpuState(g); f != cacheOf(g).state {
			if !whole && cacheOf(g).changedAt < l.since { // else it is among the recent ones
				recent = append(recent, g)
			}
			cacheOf(g).state, cacheOf(g).changedAt = f, pl.cache.clock
		}
	}
	l.recent = slices.DeleteFunc(recent, func(g *model.GPU) bool { return cacheOf(g).changedAt < before })
	slices.SortFunc(l.recent, comparePos)
	l.since = before
}

func (pl *placer) gpuState(g *model.GPU) gpuState {
	f := gpuState{pl.RejectAny(g), pl.FreeMemory(g), g.OtherProcesses, g.Turnover(), pl.scorer.forecastAt(g), pl.predictor.UnexplainedActivity(g), 0, g.NominatedFor}
	if pl.predicts() {
		f.untold = pl.scorer.untold(g)
	}
	return f
}

// markLaunched marks GPUs as changed by a launch: the GPUs of the task, and all GPUs of
// its neighbours, which may be slower now and leave room on their other GPUs.
func (pl *placer) markLaunched(gpus []*model.GPU) {
	pl.cache.clock++
	for _, g := range gpus {
		for i := range g.Residents {
			for _, grant := range pl.TaskByID(g.Residents[i].Task).Current().Grants {
				pl.markChangedGPU(pl.GPU(grant.GPU))
			}
		}
	}
}

func (pl *placer) markChangedGPU(g *model.GPU) {
	if l := &pl.cache.dirty; l.valid && cacheOf(g).changedAt < l.since {
		at, there := slices.BinarySearchFunc(l.recent, g, comparePos)
		if !there {
			l.recent = slices.Insert(l.recent, at, g)
		}
	}
	cacheOf(g).changedAt = pl.cache.clock
	g.Changed()
}

// rejectedByAll returns the clock when a task was rejected by every GPU, or 0. The
// rejection still holds for the GPUs that have not changed since, except for the returned
// GPUs, which were reserved then and may not be now.
func (pl *placer) rejectedByAll(t *model.Task) (at int, reopened []model.GPUID) {
	if pl.predicts() {
		pl.candidatesOf(t) // the answers may have changed
	}
	tried := pl.tried(t)
	if tried.at <= pl.cache.forgotten {
		return pl.cachedRejection(t)
	}
	// Whether a reserved GPU can be backfilled depends on host memory, time and
	// residents.
	if kept := &tried.head; pl.Options().FillHeld || kept.Task != pl.reserve.Head().Task || kept.Until != pl.reserve.Head().Until || !slices.Equal(kept.GPUs, pl.reserve.Head().GPUs) {
		reopened = kept.GPUs
	}
	return tried.at, reopened
}
