package mapper

import (
	"slices"

	"carma/internal/units"
)

// absencesKept is how many absences of an attempt are kept, the last ones: with the
// shortest run between two that carma makes by itself, two minutes, an hour's.
const absencesKept = 32

// SuspensionSpan is one time for which an attempt was off its GPUs.
type SuspensionSpan struct {
	From units.Instant `json:"from"`
	To   units.Instant `json:"to"`
	GPUs []GPUID       `json:"gpus"` // that it had before
}

// recordSuspension notes that a suspended attempt is back, or has ended.
func (s *State) recordSuspension(a *Attempt, away *Suspension) {
	a.SuspendedTime += s.now.Sub(away.Since)
	one := SuspensionSpan{From: away.Since, To: s.now, GPUs: make([]GPUID, 0, len(away.From))}
	for _, g := range away.From {
		one.GPUs = append(one.GPUs, g.GPU)
	}
	if n := len(a.Absences); n >= absencesKept {
		a.Absences = slices.Clone(a.Absences[n-absencesKept+1:])
	}
	a.Absences = append(slices.Clip(a.Absences), one) // copies of the state share the list
}
