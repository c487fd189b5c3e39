package predict

import (
	"cmp"
	"slices"

	"carma/internal/units"
	"carma/mapper/model"
)

// EstimateError is an estimate and the highest observed memory of a kind of task.
type EstimateError struct {
	model.RawEstimate
	Peak units.Bytes
	Last units.Instant
}

// measure stores the estimate of an attempt that succeeded, unless the attempt ended
// unobserved.
func (pr *Predictor) measure(e *KindHistory, t *model.Task, a *model.Attempt) {
	p := t.Estimate.Plain
	if p.Group == "" || p.Point <= 0 || !a.Measures() || a.Ended < pr.Now() {
		return
	}
	p.Point, p.Upper = p.Point.Clamp(), p.Upper.Clamp()
	e.Plain = p
	pr.derived.measured = nil
}

// Measured returns the raw estimate and the observed peak of each kind of task, the
// oldest first. The caller must not change the list.
func (pr *Predictor) Measured() []EstimateError {
	if !pr.Options().Learn {
		return nil
	}
	if pr.derived.measured == nil {
		list := make([]EstimateError, 0, 16)
		for _, e := range pr.history {
			if e.Plain.Group != "" && e.Peak > 0 {
				list = append(list, EstimateError{RawEstimate: e.Plain, Peak: e.Peak, Last: e.Last})
			}
		}
		slices.SortStableFunc(list, func(a, b EstimateError) int { return cmp.Compare(a.Last, b.Last) })
		pr.derived.measured = list
	}
	return pr.derived.measured
}
