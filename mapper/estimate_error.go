package mapper

import (
	"cmp"
	"slices"
	"time"

	"carma/internal/units"
)

// RawEstimate is an estimate as the estimator gave it, before runs here corrected it. The
// mapper only stores it beside the memory used by a run; estimators learn from both.
type RawEstimate struct {
	// Group names the estimates that share an error: by method, environment and family of
	// networks. Model names what was estimated. Both are empty if no model was estimated.
	Group string `json:"group,omitempty"`
	Model string `json:"model,omitempty"`
	// Point is the likeliest memory, Upper the bound.
	Point units.Bytes `json:"point,omitempty"`
	Upper units.Bytes `json:"upper,omitempty"`
}

// EstimateError is an estimate and the highest observed memory of a kind of task.
type EstimateError struct {
	RawEstimate
	Peak units.Bytes
	Last units.Instant
}

// measuredLeast is the shortest run that counts as a measurement. Samples come every
// second, and a program that ends at once has done no work.
const measuredLeast = 30 * time.Second

// Measures reports whether an attempt shows how much memory its task needs: it succeeded,
// was long enough, and did not fill most of a card at its start, needed or not.
func (a *Attempt) Measures() bool {
	return a.Class == ExitOK && a.Started > 0 && a.Peak > 0 && !a.Filled && a.Ended.Sub(a.Started) >= measuredLeast
}

// measure stores the estimate of an attempt that succeeded, unless the attempt ended
// unobserved.
func (pr *predictor) measure(e *kindHistory, t *Task, a *Attempt) {
	p := t.Estimate.Plain
	if p.Group == "" || p.Point <= 0 || !a.Measures() || a.Ended < pr.now {
		return
	}
	p.Point, p.Upper = p.Point.Clamp(), p.Upper.Clamp()
	e.Plain = p
	pr.derived.measured = nil
}

// Measured returns the raw estimate and the observed peak of each kind of task, the
// oldest first. The caller must not change the list.
func (pr *predictor) Measured() []EstimateError {
	if !pr.opt.Learn {
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
