package mapper

import (
	"carma/internal/units"
)

// Sick is an engine or a GPU on which containers do not start.
type Sick struct {
	Fault
	GPU      GPUID // which, for ScopeGPU
	Since    units.Instant
	Failures int // starts that have failed in a row
	Tasks    int // of so many tasks; fewer are counted while it is tested
	// Paused: only test launches are made. Test is when the next one may be.
	Paused bool
	Test   units.Instant
}

// Sick lists the sick engine and GPUs, the engine first.
func (s *State) Sick() []Sick {
	var all []Sick
	add := func(i *illness, gpu GPUID) {
		if i.paused() || i != nil && i.Failures >= sickStarts && s.complaining(i) {
			all = append(all, Sick{Fault: i.Fault, GPU: gpu, Since: i.Since, Failures: i.Failures, Tasks: len(i.Tasks), Paused: i.paused(), Test: i.Test})
		}
	}
	add(s.sick, "")
	for _, g := range s.gpus {
		add(g.Sick, g.ID)
	}
	return all
}

// sickness is why nothing is launched while the engine is sick.
func (s *State) sickness() Reason {
	f := &s.sick.Fault
	r := Reason{Code: ReasonEngineSick, Text: f.Cause, Remedy: f.Remedy}
	if s.sick.shut(s.now) {
		r.Span = s.sick.Test.Sub(s.now)
	}
	return r
}
