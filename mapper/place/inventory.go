package place

import (
	"slices"

	"carma/internal/units"
	"carma/mapper/model"
)

// ForgetMissing removes a missing GPU that has no task, is not cordoned and has no
// persistent fault. It may have been removed already. A GPU on which a task must resume
// is kept, and so is one with the residue of a suspended task, which is there again when
// the GPU is found.
func (pl *Placer) ForgetMissing(g *model.GPU) {
	if !g.Missing || !g.Idle() || len(g.Residue) > 0 || pl.isOriginalGPU(g) || g.Cordon != nil || g.Persistent != nil || pl.GPU(g.ID) != g {
		return
	}
	next := pl.NextInRing()
	pl.RemoveGPU(g)
	pl.InventoryChanged(next)
}

// NextInRing returns the next GPU of round-robin, or nil; InventoryChanged restores this
// position.
func (pl *Placer) NextInRing() *model.GPU {
	if pl.ring < len(pl.GPUList()) {
		return pl.GPUList()[pl.ring]
	}
	return nil
}

// InventoryChanged drops what depends on the list of GPUs, which has changed. The next GPU
// of round-robin is next, or the first.
func (pl *Placer) InventoryChanged(next *model.GPU) {
	pl.dirty.valid = false
	pl.dropped, pl.clock = pl.clock, pl.clock+1 // cached results of tasks name GPUs in ledger order
	pl.ring = max(0, slices.Index(pl.GPUList(), next))
}

// DropReservations ends some reservations. Tasks rejected for them are tried again.
func (pl *Placer) DropReservations(which func(*model.Reservation) bool) {
	if pl.reserve.Drop(which) {
		pl.DropCache()
		pl.MarkDirty()
	}
}

// AddResident adds a task to the residents of its GPUs.
func (pl *Placer) AddResident(t *model.Task, gpus []*model.GPU, grants []model.Grant, alone bool) {
	var warm units.Instant
	if pl.Options().WarmUp > 0 {
		warm = units.Never
	}
	for i, g := range gpus {
		g.Add(model.Resident{
			Task: t.ID, Grant: grants[i].Memory, Exclusive: alone, Load: t.LoadOn(i), Doubt: t.Doubt, Unseen: len(t.Expected.Loads) == 0,
			Learning: t.Learner && !alone, WarmUntil: warm,
		}, pl.Options().Headroom)
	}
	if len(gpus) > 0 {
		pl.ring = (gpus[len(gpus)-1].Pos() + 1) % len(pl.GPUList())
	}
}

// isOriginalGPU reports whether a task has vacated a GPU, or is about to, and can resume
// only there.
func (pl *Placer) isOriginalGPU(g *model.GPU) bool {
	return pl.AnyTask(func(t *model.Task) bool {
		a := t.Suspension
		return a != nil && a.InPlace && (a.Includes(g.ID) || slices.ContainsFunc(t.Last().Grants, func(at model.Grant) bool { return at.GPU == g.ID }))
	})
}
