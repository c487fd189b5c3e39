package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"carma/cmd/carma/report"
	"carma/mapper"
	"carma/mapper/sim"
	"carma/mapper/sim/study"
)

// replayWidth is what a table of a replay fits.
const replayWidth = 120

// print writes the table of one trace: a line per row, and the reference.
func (v *virtualReplay) print(w io.Writer, r *study.Replayed) error {
	m := r.Reference.Result.Metrics
	title := fmt.Sprintf(": %d tasks on %d GPUs of %s, lower bound %s%s",
		m.Tasks, len(v.Server.GPUs), v.Server.Name, report.Span(m.LowerBound), v.estimatorText())
	fmt.Fprintln(w, shorten(printable(r.Trace.Name), max(1, replayWidth-len(title)))+title)
	if v.Sharing != sim.MPS {
		fmt.Fprintf(w, "tasks share a GPU by %s, not %s\n", v.Sharing, sim.MPS)
	}
	t := &table{columns: []column{
		{title: "POLICY", least: 8, share: 1}, {title: "MAKESPAN", right: true}, {title: "JCT", right: true}, {title: "P95", right: true},
		{title: "WAIT", right: true}, {title: "EXEC", right: true}, {title: "OOMS", right: true}, {title: "LOST", right: true},
		{title: "WORST", right: true}, {title: "MJ", right: true}, {title: "SMACT", right: true}, {title: "MEM", right: true},
		{title: "RATIO", right: true},
	}}
	if r.Under(study.ReferencePreset) == nil {
		t.add(outcomeCells(r.Reference, r.Reference)...)
	}
	for i := range r.Outcomes {
		t.add(outcomeCells(&r.Outcomes[i], r.Reference)...)
	}
	if err := t.write(w, replayWidth); err != nil {
		return err
	}
	for i := range r.Outcomes {
		for _, task := range r.Outcomes[i].Result.Tasks {
			if task.Phase != mapper.Succeeded {
				fmt.Fprintf(w, "  %s: task %d (%s) %s: %s\n", r.Outcomes[i].Policy, task.ID, printable(task.Task.Name), task.Phase, printable(task.Reason))
			}
		}
	}
	return printWhole(w, r)
}

func outcomeCells(o, reference *study.Outcome) []string {
	m := &o.Result.Metrics
	return []string{
		o.Policy, report.Span(m.Makespan), report.Span(m.MeanJCT), report.Span(m.P95JCT), report.Span(m.MeanWaiting), report.Span(m.MeanExecution),
		fmt.Sprint(m.OOMs), report.Span(m.LostGPUTime), fmt.Sprintf("%.2fx", m.WorstSlowdown), megajoules(m.EnergyJ),
		fmt.Sprintf("%.2f", m.MeanSMACT), fmt.Sprintf("%.1fG", m.MeanMemory.GiB()),
		number("%.3f", study.Measure("makespan_ratio", []*study.Outcome{o}, []*study.Outcome{reference})),
	}
}

// estimatorText names the estimator that all policies have; empty: there are
// several, or presets only.
func (v *virtualReplay) estimatorText() string {
	var methods []string
	for _, r := range v.Rows {
		if !r.Preset && !slices.Contains(methods, r.Estimator) {
			methods = append(methods, r.Estimator)
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
func printOverall(w io.Writer, all []study.Replayed) error {
	fmt.Fprintf(w, "\nall %d traces: ratios to %s, geometric means; WORST the highest, OOMS and WASTED GPU-seconds sums, LOST a mean\n", len(all), study.ReferencePreset)
	t := &table{columns: []column{{title: "POLICY", least: 8, share: 1}}}
	for _, c := range overallColumns {
		t.columns = append(t.columns, column{title: c.title, right: true})
	}
	for _, label := range study.RowLabels(all) {
		outcomes, references := study.Across(all, label)
		cells := []string{label}
		for _, c := range overallColumns {
			v := study.Measure(c.metric, outcomes, references)
			if strings.HasSuffix(c.metric, study.RatioSuffix) {
				cells = append(cells, number(c.format, v))
				continue
			}
			cells = append(cells, fmt.Sprintf(c.format, v))
		}
		t.add(cells...)
	}
	return t.write(w, replayWidth)
}

// number is a ratio for a column; - where there is none.
func number(format string, v float64) string {
	if v == 0 {
		return "-"
	}
	return fmt.Sprintf(format, v)
}

// megajoules is an energy for a column.
func megajoules(j float64) string {
	if j >= 1e8 {
		return fmt.Sprintf("%.0f", j/1e6)
	}
	return fmt.Sprintf("%.2f", j/1e6)
}

// shownWhole is how many workloads of an estimator a table names; JSON has all.
const shownWhole = 3

// printWhole says which workloads got GPUs of their own for want of an estimate.
func printWhole(w io.Writer, r *study.Replayed) error {
	said := map[string]bool{}
	for i := range r.Outcomes {
		name, whole := r.Outcomes[i].Row.Estimator, r.Outcomes[i].Whole
		if said[name] {
			continue
		}
		said[name] = true
		for _, one := range whole[:min(shownWhole, len(whole))] {
			fmt.Fprintln(w, shorten(fmt.Sprintf("  %s: a whole GPU for %s: %s", name, one.Workload, printable(one.Why)), replayWidth))
		}
		if more := len(whole) - shownWhole; more > 0 {
			fmt.Fprintf(w, "  %s: and for %d more; --json lists them\n", name, more)
		}
	}
	return nil
}
