package mapper

import (
	"slices"

	"carma/internal/units"
)

// absencesKept is how many absences of an attempt are kept, the last ones: with the
// shortest run between two that carma makes by itself, two minutes, an hour's.
const absencesKept = 32

// Absence is one time for which an attempt was off its GPUs.
type Absence struct {
	From units.Instant `json:"from"`
	To   units.Instant `json:"to"`
	GPUs []GPUID       `json:"gpus"` // that it had before
}

// wasAway notes that a suspended attempt is back, or has ended.
func (s *State) wasAway(a *Attempt, away *Suspension) {
	a.Away += s.now.Sub(away.Since)
	one := Absence{From: away.Since, To: s.now, GPUs: make([]GPUID, 0, len(away.From))}
	for _, g := range away.From {
		one.GPUs = append(one.GPUs, g.GPU)
	}
	if n := len(a.Absences); n >= absencesKept {
		a.Absences = slices.Clone(a.Absences[n-absencesKept+1:])
	}
	a.Absences = append(slices.Clip(a.Absences), one) // copies of the state share the list
}
