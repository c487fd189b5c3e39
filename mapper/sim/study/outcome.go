package study

import (
	"cmp"
	"slices"
	"time"

	"carma/configs/traces"
	"carma/mapper/sim"
)

// Outcome is the result of one trace under one row.
type Outcome struct {
	Policy string // the row's label
	Row    Row
	Result sim.Result
	Whole  []WholeGPU
}

// UserSum is the sum over the tasks of one user.
type UserSum struct {
	User    string // empty for tasks without a user
	Tasks   int
	GPUTime time.Duration // time running, failed attempts included, times GPUs
	EnergyJ float64       // their shares of the GPUs' energy, in joules
}

// Users returns the sums by user, in alphabetical order.
func (o *Outcome) Users() []UserSum {
	var list []UserSum
	for i := range o.Result.Tasks {
		t := &o.Result.Tasks[i]
		n, found := slices.BinarySearchFunc(list, t.Task.User, func(u UserSum, name string) int { return cmp.Compare(u.User, name) })
		if !found {
			list = slices.Insert(list, n, UserSum{User: t.Task.User})
		}
		l := t.Record.Lifetimes()
		list[n].Tasks++
		list[n].GPUTime += (l.Execution + l.Lost) * time.Duration(t.Task.GPUs)
		list[n].EnergyJ += t.EnergyJ
	}
	return list
}

// Replayed is the result of one trace under all rows.
type Replayed struct {
	Trace    traces.Trace
	Outcomes []Outcome
	// Reference is the outcome to which ratios are relative: one task per GPU strictly in
	// order. It may be one of Outcomes.
	Reference *Outcome
}

// ReferencePreset is the preset to which ratios are relative.
const ReferencePreset = "Exclusive"

// Under returns the outcome of the row with a label, or nil.
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

// RowLabels returns the labels of the rows, the reference first if it is not one of them.
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

// Across returns the outcomes of one row, and the references, by trace, or nil if there
// is no such row.
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
