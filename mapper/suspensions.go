package mapper

import (
	"slices"

	"carma/internal/units"
)

// absencesKept is the number of latest suspensions of an attempt that are kept: about an
// hour's, as carma lets a task run for at least two minutes between two suspensions.
const absencesKept = 32

// SuspensionSpan is one interval for which an attempt was suspended.
type SuspensionSpan struct {
	From units.Instant `json:"from"`
	To   units.Instant `json:"to"`
	GPUs []GPUID       `json:"gpus"` // that it had before
}

// recordSuspension adds the interval of a suspension that ends now to its attempt.
func (l *ledger) recordSuspension(a *Attempt, away *Suspension) {
	a.SuspendedTime += l.now.Sub(away.Since)
	one := SuspensionSpan{From: away.Since, To: l.now, GPUs: make([]GPUID, 0, len(away.From))}
	for _, g := range away.From {
		one.GPUs = append(one.GPUs, g.GPU)
	}
	if n := len(a.Absences); n >= absencesKept {
		a.Absences = slices.Clone(a.Absences[n-absencesKept+1:])
	}
	a.Absences = append(slices.Clip(a.Absences), one) // copies of the state share the list
}
