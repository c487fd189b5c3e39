package replay

import (
	"fmt"
	"io"
	"slices"

	"carma/cmd/carma/cli"
	"carma/mapper/sim/study"
)

// column is a column of a table: a metric over all tasks of some traces.
type column struct{ title, metric, format string }

// suspendColumns lists the columns of the table about urgent and suspended tasks.
var suspendColumns = []column{
	{"URGENT WAIT", "urgent_waiting_mean_min", "%.2f min"}, {"P95", "urgent_waiting_p95_min", "%.2f min"}, {"P95 1 GPU", "urgent_1gpu_waiting_p95_s", "%.1f s"},
	{"OTHERS JCT", "others_jct_mean_min", "%.1f min"}, {"STRETCHED", "stretched_p99", "%.2fx"},
	{"SUSPENDS", "suspends", "%.0f"}, {"AWAY P95", "away_p95_min", "%.1f min"}, {"LONGEST", "away_max_min", "%.1f min"}, {"COPIES", "copies_s", "%.0f s"},
}

// columnsFor returns the columns for some conditions.
func columnsFor(c study.Conditions) (list []column) {
	if c.SuspendText() != "" || c.Urgent > 0 || c.DrainText() != "" || c.Truth.Idle > 0 {
		list = slices.Clone(suspendColumns)
	}
	if c.DrainText() != "" {
		list = append(list, column{"EMPTY", "drained_mean_min", "%.1f min"}, column{"MOST", "drained_max_min", "%.1f min"})
	}
	if c.Truth.Idle > 0 {
		list = append(list, column{"IDLE ENDED", "pausing_failed", "%.0f"})
	}
	return list
}

// printSuspended writes the table about urgent and suspended tasks, over all tasks of
// some traces, if the conditions cause any.
func (v *part) printSuspended(w io.Writer, all []study.Replayed) error {
	columns := columnsFor(v.Conditions())
	if len(columns) == 0 {
		return nil
	}
	t := &cli.Table{Columns: []cli.Column{{Title: "POLICY", Least: 9, Share: 1}}}
	for _, c := range columns {
		t.Columns = append(t.Columns, cli.Column{Title: c.title, Right: true})
	}
	for _, label := range study.RowLabels(all) {
		outcomes, references := study.Across(all, label)
		cells := []string{label}
		for _, c := range columns {
			cells = append(cells, fmt.Sprintf(c.format, study.Measure(c.metric, outcomes, references)))
		}
		t.Add(cells...)
	}
	fmt.Fprintln(w)
	return t.Write(w, width)
}
