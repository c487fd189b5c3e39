package attempt

import (
	"slices"

	"carma/mapper/model"
)

// VacatesOnRequest records that the program of an attempt vacates its GPUs when it is
// asked to.
func (at *Attempts) VacatesOnRequest(ev model.VacatesOnRequest) {
	t := at.TaskByID(ev.Task)
	if t == nil || t.Alive() == nil || t.Last().N != ev.Attempt || t.Last().Leaves || t.GPUs == 0 {
		return
	}
	t.Last().Leaves = true
	at.MarkDirty() // others may wait to preempt it
}

// addResidue adds the assumed residue of a program that has vacated its GPUs.
func (at *Attempts) addResidue(t *model.Task) {
	for _, from := range t.Suspension.From {
		g := at.GPU(from.GPU)
		if g == nil || !t.Suspension.InPlace || g.ResidueOf(t) > 0 {
			continue
		}
		g.Residue = append(slices.Clone(g.Residue), model.SuspendedResidue{Task: t.ID, Used: model.AssumedResidue})
		g.OtherProcesses = (g.OtherProcesses + model.AssumedResidue).Clamp()
		g.Settle()
		at.CapacityChanged()
	}
}

// DropResidue removes all residue of a suspended task that resumes or whose container has
// ended.
func (at *Attempts) DropResidue(t *model.Task) {
	if !slices.ContainsFunc(at.GPUList(), func(g *model.GPU) bool { return len(g.Residue) > 0 }) {
		return
	}
	for _, g := range slices.Clone(at.GPUList()) {
		i := slices.IndexFunc(g.Residue, func(b model.SuspendedResidue) bool { return b.Task == t.ID })
		if i < 0 {
			continue
		}
		g.OtherProcesses = max(0, g.OtherProcesses-g.Residue[i].Used)
		g.Residue = slices.Delete(slices.Clone(g.Residue), i, i+1)
		g.Settle()
		at.CapacityChanged()
		at.MarkDirty()
		at.placer.ForgetMissing(g)
	}
}
