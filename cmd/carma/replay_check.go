package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"carma/configs/nearest"
	"carma/configs/traces"
)

// read reads the traces that the file names.
func (b *bounds) read() ([]traces.Trace, error) {
	var list []traces.Trace
	for i, name := range b.traces {
		t, err := traces.Read(name)
		if err != nil {
			return nil, usagef("", "%v", b.errorf(b.lines[i], "%v", err))
		}
		t.Name = name
		list = append(list, t)
	}
	return list, nil
}

// rows are those that the bounds are about.
func (b *bounds) rows(like rowFlags) ([]replayRow, error) {
	var rows []replayRow
	for _, one := range b.list {
		more, err := rowFlags{policies: one.policy, estimator: one.method(), lookAhead: like.lookAhead, set: like.set}.rows()
		if err != nil {
			return nil, err // the file was checked
		}
		row := more[0]
		if !row.preset && row.estimator != estimators[0] {
			row.label += ":" + row.estimator
		}
		if !slices.ContainsFunc(rows, func(r replayRow) bool { return r.label == row.label }) {
			rows = append(rows, row)
		}
	}
	return rows, nil
}

func (one *bound) method() string {
	if one.estimator == "" {
		return estimators[0]
	}
	return one.estimator
}

// is reports whether the bound is about a row.
func (one *bound) is(r replayRow) bool {
	return strings.EqualFold(one.policy, r.name) && (r.preset || one.policy == r.name && one.method() == r.estimator)
}

// fit refuses bounds that are about nothing in a replay.
func (b *bounds) fit(all []traces.Trace, rows []replayRow) error {
	names, labels := []string{overTraces}, []string{}
	for _, t := range all {
		names = append(names, t.Name)
	}
	for _, r := range rows {
		labels = append(labels, r.label)
	}
	for _, one := range b.list {
		for _, t := range one.traces {
			if !slices.Contains(names, t) {
				return usagef("", "%v", b.errorf(one.line, "trace %q is not replayed; nearest: %s", t, nearest.Names(t, names, 1)[0]))
			}
		}
		if !slices.ContainsFunc(rows, one.is) {
			return usagef("", "%v", b.errorf(one.line, "policy %s with estimator %s is not replayed; nearest: %s", one.policy, one.method(), nearest.Names(one.policy, labels, 1)[0]))
		}
	}
	return nil
}

// check prints a line for each bound that does not hold.
func (b *bounds) check(w io.Writer, all []replayedTrace, rows []replayRow) (short int) {
	total := 0
	for _, one := range b.list {
		label := rows[slices.IndexFunc(rows, one.is)].label
		for _, t := range one.traces {
			total++
			if what := one.verdict(t, label, all); what != "" {
				short++
				fmt.Fprintf(w, "%s:%d: %s, %s: %s\n", b.file, one.line, printable(t), label, what)
			}
		}
	}
	if short == 0 {
		fmt.Fprintf(w, "%s: all %d bounds hold\n", b.file, total)
	} else {
		fmt.Fprintf(w, "%s: %d of %d bounds do not hold\n", b.file, short, total)
	}
	return short
}

// value is what the bound's metric came to.
func (one *bound) value(trace, label string, all []replayedTrace) float64 {
	if trace != overTraces {
		all = slices.DeleteFunc(slices.Clone(all), func(r replayedTrace) bool { return r.trace.Name != trace })
	}
	outcomes, references := across(all, label)
	return measure(one.metric, outcomes, references)
}

// verdict is empty where the bound holds.
func (one *bound) verdict(trace, label string, all []replayedTrace) string {
	switch v := one.value(trace, label, all); {
	case v == 0 && strings.HasSuffix(one.metric, ratioSuffix):
		return one.metric + " is not known: tasks failed"
	case one.hasMost && !(v <= one.most):
		return fmt.Sprintf("%s is %.4g, at most %.4g", one.metric, v, one.most)
	case one.hasLeast && !(v >= one.least):
		return fmt.Sprintf("%s is %.4g, at least %.4g", one.metric, v, one.least)
	}
	return ""
}
