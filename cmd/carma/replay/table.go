package replay

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"carma/cmd/carma/cli"
	"carma/cmd/carma/report"
	"carma/configs/servers"
	"carma/mapper/model"
	"carma/mapper/sim/study"
)

// width is the largest width of a replay's table.
const width = 120

// gpusOf describes the GPUs of the replay.
func gpusOf(s servers.Server) string {
	n := len(s.GPUs)
	machines := 1
	for i := 1; i < n; i++ {
		if s.GPUs[i].Machine != s.GPUs[i-1].Machine {
			machines++
		}
	}
	if machines > 1 {
		return fmt.Sprintf("%d GPUs of %d machines %s", n, machines, s.Name)
	}
	return fmt.Sprintf("%d GPUs of %s", n, s.Name)
}

// print writes the table of one trace: a line per row, and the reference.
func (v *part) print(w io.Writer, r *study.Replayed) error {
	m := r.Reference.Result.Metrics
	title := fmt.Sprintf(": %d tasks on %s, lower bound %s%s",
		m.Tasks, gpusOf(v.Server), report.Span(m.LowerBound), v.estimatorText())
	fmt.Fprintln(w, cli.Shorten(cli.Printable(r.Trace.Name), max(1, width-len(title)))+title)
	v.printConditions(w)
	t := &cli.Table{Columns: []cli.Column{
		{Title: "POLICY", Least: 8, Share: 1}, {Title: "MAKESPAN", Right: true}, {Title: "JCT", Right: true}, {Title: "P95", Right: true},
		{Title: "WAIT", Right: true}, {Title: "EXEC", Right: true}, {Title: "OOMS", Right: true}, {Title: "LOST", Right: true},
		{Title: "WORST", Right: true}, {Title: "ABOVE", Right: true}, {Title: "MJ", Right: true}, {Title: "SMACT", Right: true}, {Title: "MEM", Right: true},
		{Title: "RATIO", Right: true},
	}}
	if r.Under(study.ReferencePreset) == nil {
		t.Add(outcomeCells(r.Reference, r.Reference)...)
	}
	for i := range r.Outcomes {
		t.Add(outcomeCells(&r.Outcomes[i], r.Reference)...)
	}
	if err := t.Write(w, width); err != nil {
		return err
	}
	for i := range r.Outcomes {
		for _, task := range r.Outcomes[i].Result.Tasks {
			if task.Phase != model.Succeeded {
				fmt.Fprintf(w, "  %s: task %d (%s) %s: %s\n", r.Outcomes[i].Policy, task.ID, cli.Printable(task.Task.Name), task.Phase, cli.Printable(task.Reason))
			}
		}
	}
	if err := v.printSuspended(w, []study.Replayed{*r}); err != nil {
		return err
	}
	return printWhole(w, r)
}

func outcomeCells(o, reference *study.Outcome) []string {
	m := &o.Result.Metrics
	return []string{
		o.Policy, report.Span(m.Makespan), report.Span(m.MeanJCT), report.Span(m.P95JCT), report.Span(m.MeanWaiting), report.Span(m.MeanExecution),
		fmt.Sprint(m.OOMs), report.Span(m.LostGPUTime), report.Times(m.WorstSlowdown), report.Percent(m.AboveCap), report.Megajoules(m.EnergyJ),
		report.Fraction(m.MeanSMACT), report.Gigabytes(m.MeanMemory),
		number("%.3f", study.Measure("makespan_ratio", []*study.Outcome{o}, []*study.Outcome{reference})),
	}
}

// printConditions prints the differences from a replay in which all tasks are known, on
// GPUs that behave as the model predicts.
func (v *part) printConditions(w io.Writer) {
	if words := v.Conditions().Words(); len(words) > 0 {
		fmt.Fprintln(w, cli.Shorten(cli.Printable(strings.Join(words, "; ")), width))
	}
}

// estimatorText returns the estimator that all policies use, or "" if there are several,
// or only presets.
func (v *part) estimatorText() string {
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

// overallColumns lists the columns of the table over all traces.
var overallColumns = []struct{ title, metric, format string }{
	{"MAKESPAN", "makespan_ratio", "%.3f"}, {"JCT", "jct_mean_ratio", "%.3f"}, {"P95", "jct_p95_ratio", "%.3f"},
	{"WAIT", "waiting_mean_ratio", "%.3f"}, {"EXEC", "execution_mean_ratio", "%.3f"}, {"ENERGY", "energy_ratio", "%.3f"},
	{"WORST", "slowdown_max", "%.2fx"}, {"ABOVE", "above_cap", "%.1f%%"}, {"OOMS", "ooms", "%.0f"}, {"LOST", "lost_share", "%.2f%%"}, {"WASTED", "lost_gpu_s", "%.0f"}, {"BOUND", "makespan_to_bound", "%.3f"},
}

// printOverall writes the table over all traces.
func (v *part) printOverall(w io.Writer) error {
	all := v.all
	fmt.Fprintf(w, "\nall %d traces: ratios to %s, geometric means; WORST the highest, OOMS, WASTED (GPU-s) sums, LOST, ABOVE means\n", len(all), study.ReferencePreset)
	v.printConditions(w)
	t := &cli.Table{Columns: []cli.Column{{Title: "POLICY", Least: 8, Share: 1}}}
	for _, c := range overallColumns {
		t.Columns = append(t.Columns, cli.Column{Title: c.title, Right: true})
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
			if strings.HasSuffix(c.format, "%%") {
				v *= 100
			}
			cells = append(cells, fmt.Sprintf(c.format, v))
		}
		t.Add(cells...)
	}
	if err := t.Write(w, width); err != nil {
		return err
	}
	return v.printSuspended(w, all)
}

// number formats a ratio for a column, or returns "-" if there is none.
func number(format string, v float64) string {
	if v == 0 {
		return "-"
	}
	return fmt.Sprintf(format, v)
}

// shownWhole is the largest number of an estimator's workloads in a table; JSON contains
// all.
const shownWhole = 3

// printWhole lists the workloads that got exclusive GPUs because they have no estimate.
func printWhole(w io.Writer, r *study.Replayed) error {
	said := map[string]bool{}
	for i := range r.Outcomes {
		name, whole := r.Outcomes[i].Row.Estimator, r.Outcomes[i].Whole
		if said[name] {
			continue
		}
		said[name] = true
		for _, one := range whole[:min(shownWhole, len(whole))] {
			fmt.Fprintln(w, cli.Shorten(fmt.Sprintf("  %s: a whole GPU for %s: %s", name, one.Workload, cli.Printable(one.Why)), width))
		}
		if more := len(whole) - shownWhole; more > 0 {
			fmt.Fprintf(w, "  %s: and for %d more; --json lists them\n", name, more)
		}
	}
	return nil
}
