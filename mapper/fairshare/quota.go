package fairshare

import (
	"carma/internal/units"
	"carma/mapper/model"
)

// OverQuota returns the quota that keeps a waiting task from starting as a Reason, or the zero
// Reason. Quotas also apply to admins, because a user who may set quotas can also remove them.
func (us *Users) OverQuota(t *model.Task) model.Reason {
	if !us.Options().HasQuotas() {
		return model.Reason{}
	}
	if q := us.Options().QuotaOf(t.User); q.Any() {
		if r := us.over(t, q, us.SumOf(t.User)); r.Code != "" {
			return r
		}
	}
	if q := us.Options().AccountQuota(t.Account); t.Account != "" && q.Any() {
		r := us.over(t, q, us.SumOfAccount(t.Account))
		if r.Code != "" {
			r.Name = "@" + q.Name
		}
		return r
	}
	return model.Reason{}
}

// over compares the tasks of u plus another task with a quota.
func (us *Users) over(t *model.Task, q model.Quota, u User) model.Reason {
	switch {
	case q.Tasks > 0 && u.tasks >= q.Tasks:
		return model.Reason{Code: model.ReasonQuotaTasks, Name: q.Name, Count: u.tasks, Limit: q.Tasks}
	case q.GPUs > 0 && u.gpus+t.GPUs > q.GPUs:
		return model.Reason{Code: model.ReasonQuotaGPUs, Name: q.Name, Count: u.gpus, More: t.GPUs, Limit: q.GPUs}
	case q.Memory > 0 && us.total(t.GPUs, t.NextGrant, us.RunsAlone(t)) > q.Memory-u.memory:
		return model.Reason{Code: model.ReasonQuotaMemory, Name: q.Name, Have: u.memory, Need: us.total(t.GPUs, t.NextGrant, us.RunsAlone(t)), Of: q.Memory}
	}
	return model.Reason{}
}

// MemoryLeft returns the memory that a user may still be granted on an account. bounded
// is false if there is no limit.
func (us *Users) MemoryLeft(name, account string) (left units.Bytes, bounded bool) {
	if !us.Options().HasQuotas() {
		return 0, false
	}
	if q := us.Options().QuotaOf(name); q.Memory > 0 {
		left, bounded = q.Memory-us.SumOf(name).memory, true
	}
	if q := us.Options().AccountQuota(account); account != "" && q.Memory > 0 {
		of := q.Memory - us.SumOfAccount(account).memory
		if !bounded || of < left {
			left, bounded = of, true
		}
	}
	return left, bounded
}

// total returns what a task counts for the memory quota: the sum of its grants. For
// exclusive GPUs that is all of their memory, and of unequal GPUs the largest, since the
// task may get those.
func (us *Users) total(gpus int, need units.Bytes, alone bool) units.Bytes {
	if alone {
		for _, g := range us.GPUList() {
			need = max(need, us.Bookable(g))
		}
	}
	return need.Clamp() * units.Bytes(min(gpus, 1<<10))
}

// CheckQuota rejects a request that could not start even if its user and its account had
// no other task.
func (us *Users) CheckQuota(r model.Request, gpus int, need units.Bytes, alone bool) *model.ImpossibleError {
	if !us.Options().HasQuotas() {
		return nil
	}
	all := []model.Quota{us.Options().QuotaOf(r.User)}
	if r.Account != "" {
		all = append(all, us.Options().AccountQuota(r.Account))
	}
	total := us.total(gpus, need, alone)
	for _, q := range all {
		switch {
		case q.GPUs > 0 && gpus > q.GPUs:
			return &model.ImpossibleError{Option: "gpus", Reason: model.Reason{Code: model.ReasonNeverGPUs, Count: gpus, Limit: q.GPUs}}
		case q.Memory > 0 && total > q.Memory && alone:
			return &model.ImpossibleError{Option: "exclusive", Reason: model.Reason{Code: model.ReasonNeverAlone, Count: gpus, Need: total, Of: q.Memory}}
		case q.Memory > 0 && total > q.Memory:
			return &model.ImpossibleError{Option: "mem", Reason: model.Reason{Code: model.ReasonNeverMemory, Need: total, Of: q.Memory}}
		}
	}
	return nil
}
