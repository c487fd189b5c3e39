package attempt

import (
	"carma/mapper/model"
)

// ApplyLaunch launches a task as recorded, even if its grants exceed what is free now.
func (at *Attempts) ApplyLaunch(t *model.Task, d model.Launch) {
	last := t.Last()
	if t.Alive() != nil || last != nil && d.Attempt <= last.N || len(d.Grants) != t.GPUs {
		return // the recorded history contradicts itself; Audit will report it
	}
	if t.Phase == model.Estimating {
		t.Phase, t.NextExclusive = model.Held, t.Exclusive // for a later attempt; it is not estimated any more
	}
	if t.Phase == model.Held {
		at.lifecycle.ApplyRelease(t)
	}
	at.lifecycle.Dequeue(t)
	at.users.Enqueued(t) // applyLaunch decrements it
	gpus := make([]*model.GPU, len(d.Grants))
	for i, grant := range d.Grants {
		gpus[i] = at.page(grant)
	}
	at.applyLaunch(t, gpus, d)
	for _, g := range gpus {
		g.Bookable = max(g.Bookable, g.Reserved)
	}
}

// page returns the ledger's entry of a GPU, and adds it if there is none: the machine may
// have lost the GPU since.
func (at *Attempts) page(grant model.Grant) *model.GPU {
	if g := at.GPU(grant.GPU); g != nil {
		return g
	}
	g := &model.GPU{GPUInfo: model.GPUInfo{ID: grant.GPU, Capacity: grant.Memory}, Missing: true}
	next := at.placer.NextInRing()
	at.AddGPU(g)
	at.placer.InventoryChanged(next)
	return g
}

// ApplyStop stops a task as recorded, although the event did not lead to it.
func (at *Attempts) ApplyStop(t *model.Task, d model.Stop) {
	if t.Alive() != nil && t.StopReason.Code == "" {
		at.lifecycle.ApplyStop(t, d)
	}
}

// ApplyGrants applies the recorded grants of a running attempt.
func (at *Attempts) ApplyGrants(t *model.Task, d model.GrantChanged) {
	a := t.Current()
	if a == nil || a.N != d.Attempt {
		return
	}
	for _, grant := range d.Grants {
		g := at.GPU(grant.GPU)
		r := (*model.Resident)(nil)
		if g != nil {
			r = g.Resident(t.ID)
		}
		if r == nil {
			continue
		}
		if r.Grant != grant.Memory {
			at.users.Rebook(t, g, grant.Memory)
			g.Bookable = max(g.Bookable, g.Reserved)
		}
		if r.Used <= r.Grant {
			r.OverSince = 0
		}
	}
}
