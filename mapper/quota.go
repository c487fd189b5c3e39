package mapper

import "carma/mapper/units"

// RuleQuota and RuleFairShare are not about a GPU: the user has as much as one
// may have, or others go first.
const (
	RuleQuota     Rule = "quota"
	RuleFairShare Rule = "fair-share"
)

// overQuota says which quota keeps a waiting task from starting; zero: none.
// Quotas hold for everybody, admins included: who may set them can also lift
// them.
func (s *State) overQuota(t *Task) Reason {
	o := &s.opt
	if o.QuotaTasks == 0 && o.QuotaGPUs == 0 && o.QuotaMemory == 0 {
		return Reason{}
	}
	u := s.users.of(t.User)
	if u == nil {
		u = &user{Name: t.User}
	}
	switch {
	case o.QuotaTasks > 0 && u.tasks >= o.QuotaTasks:
		return Reason{Code: ReasonQuotaTasks, Name: u.Name, Count: u.tasks, Limit: o.QuotaTasks}
	case o.QuotaGPUs > 0 && u.gpus+t.GPUs > o.QuotaGPUs:
		return Reason{Code: ReasonQuotaGPUs, Name: u.Name, Count: u.gpus, More: t.GPUs, Limit: o.QuotaGPUs}
	case o.QuotaMemory > 0 && s.total(t.GPUs, t.Need, s.alone(t)) > o.QuotaMemory-u.memory:
		return Reason{Code: ReasonQuotaMemory, Name: u.Name, Have: u.memory, Need: s.total(t.GPUs, t.Need, s.alone(t)), Of: o.QuotaMemory}
	}
	return Reason{}
}

// total is what a task counts for with the memory quota: the sum of its
// grants. For GPUs of its own that is all there is on them, and of unlike GPUs
// the largest, since it may get those.
func (s *State) total(gpus int, need units.Bytes, alone bool) units.Bytes {
	if alone {
		for _, g := range s.gpus {
			need = max(need, s.bookable(g))
		}
	}
	return need.Clamp() * units.Bytes(min(gpus, 1<<10))
}

// checkQuota refuses what could not start if its user had nothing else.
func (s *State) checkQuota(gpus int, need units.Bytes, alone bool) *ImpossibleError {
	o := &s.opt
	switch total := s.total(gpus, need, alone); {
	case o.QuotaGPUs > 0 && gpus > o.QuotaGPUs:
		return &ImpossibleError{"gpus", Reason{Code: ReasonNeverGPUs, Count: gpus, Limit: o.QuotaGPUs}}
	case o.QuotaMemory > 0 && total > o.QuotaMemory && alone:
		return &ImpossibleError{"exclusive", Reason{Code: ReasonNeverAlone, Count: gpus, Need: total, Of: o.QuotaMemory}}
	case o.QuotaMemory > 0 && total > o.QuotaMemory:
		return &ImpossibleError{"mem", Reason{Code: ReasonNeverMemory, Need: total, Of: o.QuotaMemory}}
	}
	return nil
}
