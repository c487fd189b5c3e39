package mapper

import (
	"slices"

	"carma/mapper/model"
)

// absencesKept is the number of latest suspensions of an attempt that are kept: about an
// hour's, as carma lets a task run for at least two minutes between two suspensions.
const absencesKept = 32

// recordSuspension adds the interval of a suspension that ends now to its attempt.
func (pre *preempter) recordSuspension(a *model.Attempt, away *model.Suspension) {
	a.SuspendedTime += pre.Now().Sub(away.Since)
	one := model.SuspensionSpan{From: away.Since, To: pre.Now(), GPUs: make([]model.GPUID, 0, len(away.From))}
	for _, g := range away.From {
		one.GPUs = append(one.GPUs, g.GPU)
	}
	if n := len(a.Absences); n >= absencesKept {
		a.Absences = slices.Clone(a.Absences[n-absencesKept+1:])
	}
	a.Absences = append(slices.Clip(a.Absences), one) // copies of the state share the list
}
