package study

import (
	"fmt"
	"slices"
	"strings"

	"carma/configs/traces"
	"carma/internal/suggest"
)

// Read reads the traces that the section names.
func (b *Bounds) Read() ([]traces.Trace, error) {
	var list []traces.Trace
	for i, name := range b.traces {
		t, err := traces.Read(name)
		if err != nil {
			return nil, wrongf("", "%v", b.errorf(b.lines[i], "%v", err))
		}
		t.Name = name
		list = append(list, t)
	}
	return list, nil
}

// Rows returns the rows with bounds.
func (b *Bounds) Rows(like Rules) ([]Row, error) {
	var rows []Row
	for _, one := range b.list {
		more, err := Rules{Policies: one.policy, Estimator: one.method(), LookAhead: like.LookAhead, Set: like.Set}.Rows()
		if err != nil {
			return nil, err // the file was validated before
		}
		row := more[0]
		if !row.Preset && row.Estimator != Estimators[0] {
			row.Label += ":" + row.Estimator
		}
		if !slices.ContainsFunc(rows, func(r Row) bool { return r.Label == row.Label }) {
			rows = append(rows, row)
		}
	}
	return rows, nil
}

func (one *bound) method() string {
	if one.estimator == "" {
		return Estimators[0]
	}
	return one.estimator
}

// is reports whether the bound applies to a row.
func (one *bound) is(r Row) bool {
	return strings.EqualFold(one.policy, r.Name) && (r.Preset || one.policy == r.Name && one.method() == r.Estimator)
}

// Fit returns an error for a bound that does not apply to the replay.
func (b *Bounds) Fit(all []traces.Trace, rows []Row) error {
	names, labels := []string{overTraces}, []string{}
	for _, t := range all {
		names = append(names, t.Name)
	}
	for _, r := range rows {
		labels = append(labels, r.Label)
	}
	for _, one := range b.list {
		for _, t := range one.traces {
			if !slices.Contains(names, t) {
				return wrongf("", "%v", b.errorf(one.line, "trace %q is not replayed; nearest: %s", t, suggest.Names(t, names, 1)[0]))
			}
		}
		if !slices.ContainsFunc(rows, one.is) {
			return wrongf("", "%v", b.errorf(one.line, "policy %s with estimator %s is not replayed; nearest: %s", one.policy, one.method(), suggest.Names(one.policy, labels, 1)[0]))
		}
	}
	return nil
}

// Finding is a remark on a bound's value.
type Finding struct {
	Line         int // line in the file
	Trace, Label string
	What         string
}

// Check returns the bounds that do not hold, and the number of all bounds.
func (b *Bounds) Check(all []Replayed, rows []Row) (short []Finding, total int) {
	for _, one := range b.list {
		label := rows[slices.IndexFunc(rows, one.is)].Label
		for _, t := range one.traces {
			total++
			if what := one.verdict(t, label, all); what != "" {
				short = append(short, Finding{one.line, t, label, what})
			}
		}
	}
	return short, total
}

// value returns the value of the bound's metric.
func (one *bound) value(trace, label string, all []Replayed) float64 {
	if trace != overTraces {
		all = slices.DeleteFunc(slices.Clone(all), func(r Replayed) bool { return r.Trace.Name != trace })
	}
	outcomes, references := Across(all, label)
	return Measure(one.metric, outcomes, references)
}

// verdict describes how the value violates the bound, or returns "" if the bound holds.
func (one *bound) verdict(trace, label string, all []Replayed) string {
	switch v := one.value(trace, label, all); {
	case v == 0 && strings.HasSuffix(one.metric, RatioSuffix):
		return one.metric + " is not known: tasks failed"
	case one.hasMost && !(v <= one.most):
		return fmt.Sprintf("%s is %.4g, at most %.4g", one.metric, v, one.most)
	case one.hasLeast && !(v >= one.least):
		return fmt.Sprintf("%s is %.4g, at least %.4g", one.metric, v, one.least)
	}
	return ""
}
