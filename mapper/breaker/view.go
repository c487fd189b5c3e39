package breaker

import (
	"carma/internal/units"
	"carma/mapper/model"
)

// BreakerView is an engine or a GPU on which containers do not start.
type BreakerView struct {
	model.Fault
	GPU      model.GPUID // the GPU, for ScopeGPU
	Since    units.Instant
	Failures int // consecutive failed starts
	Tasks    int // number of tasks with failed starts; fewer are counted while it is probed
	// Paused means that only probe launches are allowed. Test is the earliest instant of the next
	// probe.
	Paused bool
	Test   units.Instant
}

// EngineDown returns why the engine does not answer, or the zero reason if it does.
func (b *Breakers) EngineDown() model.Reason { return b.engineDown }

// Breakers lists the unhealthy engine and GPUs, the engine first.
func (b *Breakers) Breakers() []BreakerView {
	var all []BreakerView
	add := func(i *model.Breaker, gpu model.GPUID) {
		if i.Paused() || i != nil && i.Failures >= sickStarts && b.complaining(i) {
			all = append(all, BreakerView{Fault: i.Fault, GPU: gpu, Since: i.Since, Failures: i.Failures, Tasks: len(i.Tasks), Paused: i.Paused(), Test: i.Test})
		}
	}
	add(b.engineBreaker, "")
	for _, g := range b.GPUList() {
		add(g.Breaker, g.ID)
	}
	return all
}

// EngineReason returns the reason that launching is paused on the unhealthy engine.
func (b *Breakers) EngineReason() model.Reason {
	f := &b.engineBreaker.Fault
	r := model.Reason{Code: model.ReasonEngineSick, Text: f.Cause, Remedy: f.Remedy}
	if b.engineBreaker.Open(b.Now()) {
		r.Span = b.engineBreaker.Test.Sub(b.Now())
	}
	return r
}
