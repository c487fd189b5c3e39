package study

import (
	"slices"

	"carma/configs/traces"
	"carma/mapper/sim"
)

// Outcome is one trace under one row.
type Outcome struct {
	Policy string // the row's label
	Row    Row
	Result sim.Result
	Whole  []WholeGPU
}

// Replayed is one trace under all rows.
type Replayed struct {
	Trace    traces.Trace
	Outcomes []Outcome
	// Reference is the outcome that ratios are to: one task per GPU strictly
	// in order. It may be one of Outcomes.
	Reference *Outcome
}

// ReferencePreset is what ratios are to.
const ReferencePreset = "Exclusive"

// Under is the outcome of the row of that label, or nil.
func (r *Replayed) Under(label string) *Outcome {
	for i := range r.Outcomes {
		if r.Outcomes[i].Policy == label {
			return &r.Outcomes[i]
		}
	}
	return nil
}

// Failed reports whether a task did not succeed under one of the rows.
func (r Replayed) Failed() bool {
	return slices.ContainsFunc(r.Outcomes, func(o Outcome) bool { return o.Result.Metrics.Failed > 0 })
}

// RowLabels are the labels of the rows, the reference first where it is not one of them.
func RowLabels(all []Replayed) []string {
	var list []string
	for i := range all[0].Outcomes {
		list = append(list, all[0].Outcomes[i].Policy)
	}
	if !slices.Contains(list, ReferencePreset) {
		list = slices.Insert(list, 0, ReferencePreset)
	}
	return list
}

// Across are the outcomes of one row, and the references, by trace; nil where
// there is no such row.
func Across(all []Replayed, label string) (outcomes, references []*Outcome) {
	for i := range all {
		o := all[i].Under(label)
		if o == nil && label == ReferencePreset {
			o = all[i].Reference
		}
		if o == nil {
			return nil, nil
		}
		outcomes = append(outcomes, o)
		references = append(references, all[i].Reference)
	}
	return outcomes, references
}
