package mapper

import "carma/mapper/model"

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
