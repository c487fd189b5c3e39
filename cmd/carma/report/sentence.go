package report

import (
	"fmt"
	"strings"
)

// outcome describes the result in words: the fastest policy and the one with the least
// waiting, compared with the reference, and their drawbacks.
func (d *Data) outcome() string {
	var all []*Run
	failed := 0
	for i := range d.Runs {
		if m := &d.Runs[i].Metrics; m.Failed > 0 {
			failed++
		} else if m.Tasks > 0 {
			all = append(all, &d.Runs[i])
		}
	}
	if len(all) == 0 {
		if failed > 0 {
			return "No policy brought all tasks to their end."
		}
		return ""
	}
	first := d.reference()
	quick, jct := all[0], all[0]
	for _, r := range all {
		if r.Metrics.Makespan < quick.Metrics.Makespan {
			quick = r
		}
		if r.Metrics.MeanJCT < jct.Metrics.MeanJCT {
			jct = r
		}
	}
	makespan := Span(quick.Metrics.Makespan) + to(quick, first, quick.Metrics.RatioTo(first.Metrics).Makespan)
	mean := Span(jct.Metrics.MeanJCT) + to(jct, first, jct.Metrics.RatioTo(first.Metrics).MeanJCT)
	var b strings.Builder
	switch {
	case len(d.Runs) == 1:
		fmt.Fprintf(&b, "%s does all tasks in %s; a task is done after %s on average.", clean(quick.Policy), makespan, mean)
	case quick == jct:
		fmt.Fprintf(&b, "Of %d policies, %s is the first with all tasks done, after %s, and has the shortest mean JCT, %s.", len(d.Runs), clean(quick.Policy), makespan, mean)
	default:
		fmt.Fprintf(&b, "Of %d policies, %s is the first with all tasks done, after %s; %s has the shortest mean JCT, %s.", len(d.Runs), clean(quick.Policy), makespan, clean(jct.Policy), mean)
	}
	m := &jct.Metrics
	fmt.Fprintf(&b, " Under %s %s ran out of GPU memory", clean(jct.Policy), count(m.OOMs, "attempt", "attempts", "no attempt"))
	if m.WorstSlowdown > 0 {
		fmt.Fprintf(&b, ", and no task took more than %.2f times as long as alone (%s above 1.6)", m.WorstSlowdown, Percent(m.AboveCap))
	}
	b.WriteString(".")
	if failed > 0 {
		fmt.Fprintf(&b, " %s did not bring all tasks to their end, and %s left out of this comparison.", count(failed, "policy", "policies", ""), map[bool]string{true: "is", false: "are"}[failed == 1])
	}
	return b.String()
}

// to compares a run with the reference, in brackets. It returns "" for the reference
// itself.
func to(r, first *Run, ratio float64) string {
	if r.Policy != first.Policy && Ratio(ratio) != "" {
		return fmt.Sprintf(" (%.3f of %s)", ratio, clean(first.Policy))
	}
	return ""
}

func count(n int, one, many, none string) string {
	switch {
	case n == 0 && none != "":
		return none
	case n == 1:
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
