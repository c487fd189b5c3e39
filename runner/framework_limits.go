package runner

import (
	"slices"

	"carma/runner/limits"
)

// How frameworks are made to limit their own memory.
const (
	// CapsGrowth makes frameworks take memory as they need it, not all at their start.
	CapsGrowth = "growth"
	// CapsFractions in addition limits their allocators to the grant.
	CapsFractions = "fractions"
	// CapsOff sets no limits in frameworks.
	CapsOff = "off"
)

// caps returns the variables that limit the frameworks of a task that may share
// its GPUs. Variables that the task or its image sets are left out.
func (w *worker) caps() []string {
	o := w.opt.Limits
	if o.Caps == CapsOff || o.Caps == "" || w.rec.Task.NextExclusive || len(w.launch.Grants) == 0 {
		return nil
	}
	have := slices.Concat(w.rec.ImageEnv, w.rec.Submit.Env)
	add := limits.Growth(have)
	if o.Caps != CapsFractions {
		return add
	}
	most := 0.0 // one variable serves all GPUs, so that no GPU's fraction is less than its grant
	for _, g := range w.launch.Grants {
		most = max(most, limits.Fraction(int64(g.Memory), int64(o.Context), int64(w.gpus.Capacity(g.GPU))))
	}
	return append(add, limits.Fractions(have, most)...)
}
