package mapper

import "fmt"

// RuleQuota and RuleFairShare are not about a GPU: the user has as much as one
// may have, or others go first.
const (
	RuleQuota     Rule = "quota"
	RuleFairShare Rule = "fair-share"
)

// overQuota says which quota keeps a waiting task from starting, or "". Quotas
// hold for everybody, admins included: who may set them can also lift them.
func (s *State) overQuota(t *Task) string {
	o := &s.opt
	if o.QuotaTasks == 0 && o.QuotaGPUs == 0 && o.QuotaMemory == 0 {
		return ""
	}
	u := s.users.of(t.User)
	if u == nil {
		u = &user{Name: t.User}
	}
	switch {
	case o.QuotaTasks > 0 && u.tasks >= o.QuotaTasks:
		return fmt.Sprintf("%s has %s running, the most allowed per user", u.Name, plural(u.tasks, "task"))
	case o.QuotaGPUs > 0 && u.gpus+t.GPUs > o.QuotaGPUs:
		return fmt.Sprintf("%s has %s and would have %d, of %d allowed per user", u.Name, plural(u.gpus, "GPU"), u.gpus+t.GPUs, o.QuotaGPUs)
	case o.QuotaMemory > 0 && s.total(t.GPUs, t.Need, s.alone(t)) > o.QuotaMemory-u.memory:
		return fmt.Sprintf("%s has %s of GPU memory reserved and needs %s more, of %s allowed per user",
			u.Name, u.memory, s.total(t.GPUs, t.Need, s.alone(t)), o.QuotaMemory)
	}
	return ""
}

// total is what a task counts for with the memory quota: the sum of its
// grants. For GPUs of its own that is all there is on them, and of unlike GPUs
// the largest, since it may get those.
func (s *State) total(gpus int, need Bytes, alone bool) Bytes {
	if alone {
		for _, g := range s.gpus {
			need = max(need, s.bookable(g))
		}
	}
	return need.clamp() * Bytes(min(gpus, 1<<10))
}

// checkQuota refuses what could not start if its user had nothing else.
func (s *State) checkQuota(gpus int, need Bytes, alone bool) error {
	o := &s.opt
	switch total := s.total(gpus, need, alone); {
	case o.QuotaGPUs > 0 && gpus > o.QuotaGPUs:
		return &ImpossibleError{"gpus", fmt.Sprintf("%s asked for, a user may have %d", plural(gpus, "GPU"), o.QuotaGPUs)}
	case o.QuotaMemory > 0 && total > o.QuotaMemory && alone:
		return &ImpossibleError{"exclusive", fmt.Sprintf("it needs %s for itself, up to %s of GPU memory; a user may have %s", plural(gpus, "GPU"), total, o.QuotaMemory)}
	case o.QuotaMemory > 0 && total > o.QuotaMemory:
		return &ImpossibleError{"mem", fmt.Sprintf("%s of GPU memory asked for in all, a user may have %s", total, o.QuotaMemory)}
	}
	return nil
}
