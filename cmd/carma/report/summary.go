package report

import (
	"fmt"
	"slices"
	"time"

	"carma/mapper/sim"
)

// row is a policy's row in the table.
type row struct {
	Policy   legendEntry
	Run      string // id of its part of the page, or empty
	Baseline bool
	Cells    []cell
}

// cell is a figure with its ratio to the reference, if any. Best marks the best of a
// column.
type cell struct {
	Value, Ratio string
	Best         bool
}

// reference returns the run to which ratios are relative. The console names the same run.
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

// measure is a column of the table. The console has the same figures.
type measure struct {
	title string
	text  func(*sim.Metrics) string
	ratio func(sim.Ratios) float64     // or nil
	value func(m *sim.Metrics) float64 // value used to find the best, or nil
	most  bool                         // the highest value is the best
}

func timeMeasure(title string, of func(*sim.Metrics) time.Duration, ratio func(sim.Ratios) float64) measure {
	return measure{title: title, text: func(m *sim.Metrics) string { return Span(of(m)) }, ratio: ratio,
		value: func(m *sim.Metrics) float64 { return of(m).Seconds() }}
}

var measures = []measure{
	timeMeasure("makespan", func(m *sim.Metrics) time.Duration { return m.Makespan }, func(r sim.Ratios) float64 { return r.Makespan }),
	timeMeasure("mean JCT", func(m *sim.Metrics) time.Duration { return m.MeanJCT }, func(r sim.Ratios) float64 { return r.MeanJCT }),
	timeMeasure("p95 JCT", func(m *sim.Metrics) time.Duration { return m.P95JCT }, func(r sim.Ratios) float64 { return r.P95JCT }),
	timeMeasure("mean waiting", func(m *sim.Metrics) time.Duration { return m.MeanWaiting }, func(r sim.Ratios) float64 { return r.MeanWaiting }),
	timeMeasure("mean execution", func(m *sim.Metrics) time.Duration { return m.MeanExecution }, nil),
	{"OOMs", func(m *sim.Metrics) string { return fmt.Sprint(m.OOMs) }, nil, func(m *sim.Metrics) float64 { return float64(m.OOMs) }, false},
	timeMeasure("lost GPU time", func(m *sim.Metrics) time.Duration { return m.LostGPUTime }, nil),
	{"worst slowdown", func(m *sim.Metrics) string { return Times(m.WorstSlowdown) }, nil, func(m *sim.Metrics) float64 { return m.WorstSlowdown }, false},
	{"slowed above 1.6", func(m *sim.Metrics) string { return Percent(m.AboveCap) }, nil, func(m *sim.Metrics) float64 { return m.AboveCap }, false},
	{"energy, MJ", func(m *sim.Metrics) string { return Megajoules(m.EnergyJ) }, func(r sim.Ratios) float64 { return r.Energy }, func(m *sim.Metrics) float64 { return m.EnergyJ }, false},
	{"SMACT", func(m *sim.Metrics) string { return Fraction(m.MeanSMACT) }, nil, func(m *sim.Metrics) float64 { return m.MeanSMACT }, true},
	{"memory", func(m *sim.Metrics) string { return Gigabytes(m.MeanMemory) }, nil, nil, false},
	{"of lower bound", func(m *sim.Metrics) string { return Ratio(quotient(m.Makespan, m.LowerBound)) }, nil, nil, false},
}

var urgentMeasures = []measure{
	timeMeasure("urgent tasks waited, mean", func(m *sim.Metrics) time.Duration { return m.MeanUrgent }, nil),
	timeMeasure("p95", func(m *sim.Metrics) time.Duration { return m.P95Urgent }, nil),
}

var suspendMeasures = []measure{
	{"suspensions", func(m *sim.Metrics) string { return fmt.Sprint(m.Suspends) }, nil, nil, false},
	{"longest", func(m *sim.Metrics) string { return Span(m.LongestAway) }, nil, nil, false},
	{"p99 of first start to end, to alone", func(m *sim.Metrics) string { return Times(m.P99Stretched) }, nil, nil, false},
}

// summary returns the header and a row per policy. The reference has the first row if it
// is not a policy of the replay.
func summary(runs []Run, first *Run, id string) (header []string, rows []row) {
	columns := slices.Clone(measures)
	if slices.ContainsFunc(runs, func(r Run) bool { return r.Metrics.UrgentTasks > 0 }) {
		columns = append(columns, urgentMeasures...)
	}
	if slices.ContainsFunc(runs, func(r Run) bool { return r.Metrics.Suspends > 0 }) {
		columns = append(columns, suspendMeasures...)
	}
	for _, c := range columns {
		header = append(header, c.title)
	}
	var metrics []*sim.Metrics
	colours := palette(runs)
	add := func(r *Run, policy legendEntry, run string) {
		own := row{Policy: policy, Run: run, Baseline: r.Policy == first.Policy}
		ratios := r.Metrics.RatioTo(first.Metrics)
		for _, c := range columns {
			one := cell{Value: c.text(&r.Metrics)}
			if c.ratio != nil && !own.Baseline {
				one.Ratio = Ratio(c.ratio(ratios))
			}
			own.Cells = append(own.Cells, one)
		}
		if r.Metrics.Failed > 0 {
			own.Cells[0].Ratio = fmt.Sprintf("%d failed", r.Metrics.Failed)
		}
		rows, metrics = append(rows, own), append(metrics, &r.Metrics)
	}
	if !slices.ContainsFunc(runs, func(r Run) bool { return r.Policy == first.Policy }) {
		add(first, legendEntry{clean(first.Policy), "rest"}, "")
	}
	for i := range runs {
		add(&runs[i], legendEntry{clean(runs[i].Policy), colours[i]}, runID(id, i))
	}
	markBest(columns, rows, metrics)
	return header, rows
}

// markBest marks the best of each column, or several that look the same. Runs with failed
// tasks are not compared, because they have less to do. A column in which all are the
// same has no best.
func markBest(columns []measure, rows []row, metrics []*sim.Metrics) {
	for c, column := range columns {
		best, differ := -1, false
		for i, m := range metrics {
			if column.value == nil || m.Failed > 0 || m.Tasks == 0 {
				continue
			}
			if best >= 0 {
				differ = differ || rows[i].Cells[c].Value != rows[best].Cells[c].Value
			}
			if best < 0 || column.most == (column.value(m) > column.value(metrics[best])) && column.value(m) != column.value(metrics[best]) {
				best = i
			}
		}
		for i := range rows {
			if differ && metrics[i].Failed == 0 && rows[i].Cells[c].Value == rows[best].Cells[c].Value {
				rows[i].Cells[c].Best = true
			}
		}
	}
}
