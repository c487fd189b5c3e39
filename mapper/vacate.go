package mapper

import (
	"slices"

	"carma/mapper/model"
)

func (s *State) vacatesOnRequest(ev model.VacatesOnRequest) {
	t := s.TaskByID(ev.Task)
	if t == nil || t.Alive() == nil || t.Last().N != ev.Attempt || t.Last().Leaves || t.GPUs == 0 {
		return
	}
	t.Last().Leaves = true
	s.MarkDirty() // others may wait to preempt it
}

// recordResidue returns the memory that suspended tasks still hold on a GPU: a program
// that has vacated it keeps its context there. The residue is allocated to no task and
// counts as other processes, except for the task itself when it resumes.
func (s *State) recordResidue(uses []model.TaskUse) (all []model.SuspendedResidue) {
	for _, u := range uses {
		if t := s.TaskByID(u.Task); t != nil && t.Phase == model.Suspended && u.Used > 0 {
			all = append(all, model.SuspendedResidue{Task: u.Task, Used: u.Used.Clamp()})
		}
	}
	return all
}

// addResidue adds the assumed residue of a program that has vacated its GPUs.
func (s *State) addResidue(t *model.Task) {
	for _, from := range t.Suspension.From {
		g := s.GPU(from.GPU)
		if g == nil || !t.Suspension.InPlace || g.ResidueOf(t) > 0 {
			continue
		}
		g.Residue = append(slices.Clone(g.Residue), model.SuspendedResidue{Task: t.ID, Used: model.AssumedResidue})
		g.OtherProcesses = (g.OtherProcesses + model.AssumedResidue).Clamp()
		g.Settle()
		s.CapacityChanged()
	}
}

// takesAll removes all residue of a suspended task that resumes or whose container has
// ended.
func (s *State) takesAll(t *model.Task) {
	if !slices.ContainsFunc(s.GPUList(), func(g *model.GPU) bool { return len(g.Residue) > 0 }) {
		return
	}
	for _, g := range slices.Clone(s.GPUList()) {
		i := slices.IndexFunc(g.Residue, func(b model.SuspendedResidue) bool { return b.Task == t.ID })
		if i < 0 {
			continue
		}
		g.OtherProcesses = max(0, g.OtherProcesses-g.Residue[i].Used)
		g.Residue = slices.Delete(slices.Clone(g.Residue), i, i+1)
		g.Settle()
		s.CapacityChanged()
		s.MarkDirty()
		s.placer.ForgetMissing(g)
	}
}
