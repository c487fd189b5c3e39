package report

import (
	"fmt"
	"slices"

	"carma/mapper/sim"
)

// row is a policy's line in the table.
type row struct {
	Policy legendEntry
	Cells  []cell
}

// cell is a figure and, where it has one, its ratio to the reference.
type cell struct{ Value, Ratio string }

// reference is the run that ratios are to, the one that the console names.
func (d *Data) reference() *Run {
	if d.Reference != nil {
		return d.Reference
	}
	for i := range d.Runs {
		if d.Runs[i].Policy == "exclusive" {
			return &d.Runs[i]
		}
	}
	return &d.Runs[0]
}

// summary is the table: its heading and a row per policy.
func summary(runs []Run, first *Run) (header []string, rows []row) {
	header = []string{
		"makespan", "mean JCT", "p95 JCT", "mean waiting", "mean execution", "OOMs", "lost GPU time",
		"worst slowdown", "slowed above 1.6", "SMACT", "memory", "energy", "of lower bound",
	}
	urgent := slices.ContainsFunc(runs, func(r Run) bool { return r.Metrics.UrgentTasks > 0 })
	if urgent {
		header = append(header, "urgent tasks waited, mean", "p95")
	}
	suspends := slices.ContainsFunc(runs, func(r Run) bool { return r.Metrics.Suspends > 0 })
	if suspends {
		header = append(header, "suspensions", "longest", "p99 of first start to end, to alone")
	}
	for i := range runs {
		m := &runs[i].Metrics
		r := m.RatioTo(first.Metrics)
		if runs[i].Policy == first.Policy {
			r = sim.Ratios{}
		}
		cells := []cell{
			{Span(m.Makespan), ratio(r.Makespan)}, {Span(m.MeanJCT), ratio(r.MeanJCT)}, {Span(m.P95JCT), ratio(r.P95JCT)},
			{Span(m.MeanWaiting), ratio(r.MeanWaiting)}, {Span(m.MeanExecution), ""}, {fmt.Sprint(m.OOMs), ""},
			{Span(m.LostGPUTime), ""}, {fmt.Sprintf("%.2f", m.WorstSlowdown), ""}, {percent(m.AboveCap), ""}, {percent(m.MeanSMACT), ""},
			{gib(m.MeanMemory), ""}, {energy(m.EnergyJ), ratio(r.Energy)}, {"", ""},
		}
		if m.LowerBound > 0 {
			cells[len(cells)-1].Value = ratio(m.Makespan.Seconds() / m.LowerBound.Seconds())
		}
		if urgent {
			cells = append(cells, cell{Span(m.MeanUrgent), ""}, cell{Span(m.P95Urgent), ""})
		}
		if suspends {
			cells = append(cells, cell{fmt.Sprint(m.Suspends), ""}, cell{Span(m.LongestAway), ""}, cell{fmt.Sprintf("%.2f", m.P99Stretched), ""})
		}
		if m.Failed > 0 {
			cells[0].Ratio = fmt.Sprintf("%d failed", m.Failed)
		}
		rows = append(rows, row{legendEntry{clean(runs[i].Policy), palette(runs)[i].class}, cells})
	}
	return header, rows
}
