package explain

import (
	"time"

	"carma/internal/units"
	"carma/mapper/model"
)

// Impossible returns why a request cannot be met even on an empty machine, with the nearest
// possible value, or nil if it can.
func (ex *Explainer) Impossible(r model.Request, e model.Estimate) *model.ImpossibleError {
	if no := ex.impossibleHost(r); no != nil {
		return no
	}
	if r.NoGPU {
		return ex.checkSlot(r.Slot)
	}
	n, most := max(r.GPUs, 1), ex.MostBookable()
	switch {
	case n > len(most):
		return &model.ImpossibleError{Option: "gpus", Reason: ex.tooMany(n, len(most))}
	case e.Memory > most.Of(n) && !e.ExceedsByMargin(most.Of(n)):
		return &model.ImpossibleError{Option: "mem", Reason: model.Reason{Code: model.ReasonTooMuchMemory, Need: e.Memory, Count: n, Of: most.Of(n)}}
	}
	need, alone := e.Memory, r.Exclusive || e.WholeGPU || ex.IdleOnly()
	if ex.Learns(&model.Task{Request: r, Estimate: e}) {
		need, alone = ex.LearnerNeed(n), false
	}
	if no := ex.users.CheckQuota(r, n, need, alone); no != nil {
		return no
	}
	return ex.checkSlot(r.Slot)
}

// impossibleHost rejects a request that exceeds every machine.
func (ex *Explainer) impossibleHost(r model.Request) *model.ImpossibleError {
	var most units.Bytes
	cpus, known := int64(0), false
	for _, h := range ex.HostList() {
		if h.Known {
			most, cpus, known = max(most, h.MaxMemory()), max(cpus, h.CPUs), true
		}
	}
	switch {
	case known && r.HostRequest() > most:
		return &model.ImpossibleError{Option: "host-mem", Reason: model.Reason{Code: model.ReasonTooMuchHost, Need: r.HostRequest(), Of: most}}
	case known && r.CPUs > cpus:
		return &model.ImpossibleError{Option: "cpus", Reason: model.Reason{Code: model.ReasonTooManyCPUs, More: int(r.CPUs), Limit: int(cpus)}}
	}
	return nil
}

// checkSlot rejects a slot that is longer than the server's.
func (ex *Explainer) checkSlot(slot time.Duration) *model.ImpossibleError {
	if ex.Options().Slot > 0 && slot > ex.Options().Slot {
		return &model.ImpossibleError{Option: "slot", Reason: model.Reason{Code: model.ReasonSlotTooLong, Span: slot, Most: ex.Options().Slot}}
	}
	return nil
}

// whole returns the number of GPUs that are whole cards.
func (ex *Explainer) whole() (n int) {
	for _, g := range ex.GPUList() {
		if !g.MIG {
			n++
		}
	}
	return n
}

// MostGPUs returns the largest number of known GPUs that one task can have: all whole
// cards, or one MIG instance.
func (ex *Explainer) MostGPUs() int { return max(ex.whole(), min(len(ex.GPUList()), 1)) }

// tooMany says why a task can never have n GPUs here; limit is the most it can have.
func (ex *Explainer) tooMany(n, limit int) model.Reason {
	if whole := ex.whole(); n <= len(ex.GPUList()) && n > whole {
		return model.Reason{Code: model.ReasonOnlyParts, Count: n, Limit: whole}
	}
	return model.Reason{Code: model.ReasonTooManyGPUs, Count: n, Limit: limit}
}
