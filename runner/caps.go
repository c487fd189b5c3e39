package runner

import (
	"slices"

	"carma/runner/limits"
)

// How frameworks are made to bound themselves.
const (
	// CapsGrowth: they take memory as they need it, not all at their start.
	CapsGrowth = "growth"
	// CapsFractions: and their allocators stop at the grant.
	CapsFractions = "fractions"
	// CapsOff: they are left alone.
	CapsOff = "off"
)

// caps are the variables that bound the frameworks of a task that may share its
// GPUs, as far as neither it nor its image sets them.
func (w *worker) caps() []string {
	o := w.opt.Limits
	if o.Caps == CapsOff || o.Caps == "" || w.rec.Task.Alone || len(w.launch.Grants) == 0 {
		return nil
	}
	have := slices.Concat(w.rec.ImageEnv, w.rec.Submit.Env)
	add := limits.Growth(have)
	if o.Caps != CapsFractions {
		return add
	}
	most := 0.0 // one variable for all GPUs: none gets less than its grant
	for _, g := range w.launch.Grants {
		most = max(most, limits.Fraction(int64(g.Memory), int64(o.Context), int64(w.capacity(g.GPU))))
	}
	return append(add, limits.Fractions(have, most)...)
}
