package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"carma/cmd/carma/report"
	"carma/mapper"
	"carma/mapper/sim"
)

// replayWidth is what a table of a replay fits.
const replayWidth = 120

// print writes the table of one trace: a line per row, and the reference.
func (v *virtualReplay) print(w io.Writer, r *replayedTrace) error {
	m := r.reference.result.Metrics
	title := fmt.Sprintf(": %d tasks on %d GPUs of %s, lower bound %s%s",
		m.Tasks, len(v.server.GPUs), v.server.Name, report.Span(m.LowerBound), v.estimatorText())
	fmt.Fprintln(w, shorten(printable(r.trace.Name), max(1, replayWidth-len(title)))+title)
	if v.sharing != sim.MPS {
		fmt.Fprintf(w, "tasks share a GPU by %s, not %s\n", v.sharing, sim.MPS)
	}
	t := &table{columns: []column{
		{title: "POLICY", least: 8, share: 1}, {title: "MAKESPAN", right: true}, {title: "JCT", right: true}, {title: "P95", right: true},
		{title: "WAIT", right: true}, {title: "EXEC", right: true}, {title: "OOMS", right: true}, {title: "LOST", right: true},
		{title: "WORST", right: true}, {title: "MJ", right: true}, {title: "SMACT", right: true}, {title: "MEM", right: true},
		{title: "RATIO", right: true},
	}}
	if r.under(referencePreset) == nil {
		t.add(r.reference.cells(r.reference)...)
	}
	for i := range r.outcomes {
		t.add(r.outcomes[i].cells(r.reference)...)
	}
	if err := t.write(w, replayWidth); err != nil {
		return err
	}
	for i := range r.outcomes {
		for _, task := range r.outcomes[i].result.Tasks {
			if task.Phase != mapper.Succeeded {
				fmt.Fprintf(w, "  %s: task %d (%s) %s: %s\n", r.outcomes[i].policy, task.ID, printable(task.Task.Name), task.Phase, printable(task.Reason))
			}
		}
	}
	return printWhole(w, r)
}

func (o *outcome) cells(reference *outcome) []string {
	m := &o.result.Metrics
	return []string{
		o.policy, report.Span(m.Makespan), report.Span(m.MeanJCT), report.Span(m.P95JCT), report.Span(m.MeanWaiting), report.Span(m.MeanExecution),
		fmt.Sprint(m.OOMs), report.Span(m.LostGPUTime), fmt.Sprintf("%.2fx", m.WorstSlowdown), megajoules(m.EnergyJ),
		fmt.Sprintf("%.2f", m.MeanSMACT), fmt.Sprintf("%.1fG", m.MeanMemory.GiB()),
		number("%.3f", measure("makespan_ratio", []*outcome{o}, []*outcome{reference})),
	}
}

// estimatorText names the estimator that all policies have; empty: there are
// several, or presets only.
func (v *virtualReplay) estimatorText() string {
	var methods []string
	for _, r := range v.rows {
		if !r.preset && !slices.Contains(methods, r.estimator) {
			methods = append(methods, r.estimator)
		}
	}
	if len(methods) != 1 {
		return ""
	}
	return ", estimator " + methods[0]
}

// overallColumns are those of the table over all traces.
var overallColumns = []struct{ title, metric, format string }{
	{"MAKESPAN", "makespan_ratio", "%.3f"}, {"JCT", "jct_mean_ratio", "%.3f"}, {"P95", "jct_p95_ratio", "%.3f"},
	{"WAIT", "waiting_mean_ratio", "%.3f"}, {"EXEC", "execution_mean_ratio", "%.3f"}, {"ENERGY", "energy_ratio", "%.3f"},
	{"WORST", "slowdown_max", "%.2fx"}, {"OOMS", "ooms", "%.0f"}, {"LOST", "lost_share", "%.2f"}, {"WASTED", "lost_gpu_s", "%.0f"}, {"BOUND", "makespan_to_bound", "%.3f"},
}

// printOverall writes the table over all traces.
func printOverall(w io.Writer, all []replayedTrace) error {
	fmt.Fprintf(w, "\nall %d traces: ratios to %s, geometric means; WORST the highest, OOMS and WASTED GPU-seconds sums, LOST a mean\n", len(all), referencePreset)
	t := &table{columns: []column{{title: "POLICY", least: 8, share: 1}}}
	for _, c := range overallColumns {
		t.columns = append(t.columns, column{title: c.title, right: true})
	}
	for _, label := range rowLabels(all) {
		outcomes, references := across(all, label)
		cells := []string{label}
		for _, c := range overallColumns {
			v := measure(c.metric, outcomes, references)
			if strings.HasSuffix(c.metric, ratioSuffix) {
				cells = append(cells, number(c.format, v))
				continue
			}
			cells = append(cells, fmt.Sprintf(c.format, v))
		}
		t.add(cells...)
	}
	return t.write(w, replayWidth)
}

// ratioSuffix ends the names of metrics that are relative to the reference.
const ratioSuffix = "_ratio"

// number is a ratio for a column; - where there is none.
func number(format string, v float64) string {
	if v == 0 {
		return "-"
	}
	return fmt.Sprintf(format, v)
}

// rowLabels are the labels of the rows, the reference first where it is not one of them.
func rowLabels(all []replayedTrace) []string {
	var list []string
	for i := range all[0].outcomes {
		list = append(list, all[0].outcomes[i].policy)
	}
	if !slices.Contains(list, referencePreset) {
		list = slices.Insert(list, 0, referencePreset)
	}
	return list
}

// across are the outcomes of one row, and the references, by trace; nil where
// there is no such row.
func across(all []replayedTrace, label string) (outcomes, references []*outcome) {
	for i := range all {
		o := all[i].under(label)
		if o == nil && label == referencePreset {
			o = all[i].reference
		}
		if o == nil {
			return nil, nil
		}
		outcomes = append(outcomes, o)
		references = append(references, all[i].reference)
	}
	return outcomes, references
}

// megajoules is an energy for a column.
func megajoules(j float64) string {
	if j >= 1e8 {
		return fmt.Sprintf("%.0f", j/1e6)
	}
	return fmt.Sprintf("%.2f", j/1e6)
}
