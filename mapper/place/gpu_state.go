package place

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
func (tr *tracker) markChanged() {
	before := tr.began
	tr.clock++
	tr.began = tr.clock
	l := &tr.dirty
	recent, whole := l.recent, !l.valid
	if whole {
		recent = slices.Clone(tr.GPUList())
	}
	for _, g := range tr.refreshDirty() {
		if f := tr.gpuState(g); f != cacheOf(g).state {
			if !whole && cacheOf(g).changedAt < l.since { // else it is among the recent ones
				recent = append(recent, g)
			}
			cacheOf(g).state, cacheOf(g).changedAt = f, tr.clock
		}
	}
	l.recent = slices.DeleteFunc(recent, func(g *model.GPU) bool { return cacheOf(g).changedAt < before })
	slices.SortFunc(l.recent, comparePos)
	l.since = before
}

func (tr *tracker) gpuState(g *model.GPU) gpuState {
	f := gpuState{tr.RejectAny(g), tr.FreeMemory(g), g.OtherProcesses, g.Turnover(), tr.scorer.forecastAt(g), tr.predictor.UnexplainedActivity(g), 0, g.NominatedFor}
	if tr.predicts {
		f.untold = tr.scorer.untold(g)
	}
	return f
}

// MarkLaunched marks GPUs as changed by a launch: the GPUs of the task, and all GPUs of
// its neighbours, which may be slower now and leave room on their other GPUs.
func (tr *tracker) MarkLaunched(gpus []*model.GPU) {
	tr.clock++
	for _, g := range gpus {
		for i := range g.Residents {
			for _, grant := range tr.TaskByID(g.Residents[i].Task).Current().Grants {
				tr.markChangedGPU(tr.GPU(grant.GPU))
			}
		}
	}
}

// NominationChanged has the tasks that a GPU has rejected tried there again.
func (tr *tracker) NominationChanged(g *model.GPU) {
	tr.clock++
	tr.markChangedGPU(g)
}

func (tr *tracker) markChangedGPU(g *model.GPU) {
	if l := &tr.dirty; l.valid && cacheOf(g).changedAt < l.since {
		at, there := slices.BinarySearchFunc(l.recent, g, comparePos)
		if !there {
			l.recent = slices.Insert(l.recent, at, g)
		}
	}
	cacheOf(g).changedAt = tr.clock
	g.Changed()
}

// Reconsider has rejected tasks tried on a GPU again, although it may look as before.
func (tr *tracker) Reconsider(g *model.GPU) { cacheOf(g).state = gpuState{} }
