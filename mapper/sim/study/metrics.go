package study

import (
	"math"
	"slices"
	"time"
)

// Metric is one measure of a replay, with its name in bounds, in published figures and in
// JSON.
type Metric struct {
	Name, Doc string
	of        func(o, reference *Outcome) float64
	// over combines the values of several traces.
	over func([]float64) float64
	// pool, if not nil, computes the metric over all tasks of the traces, and replaces the
	// other two functions.
	pool func([]*Outcome) float64
}

// Metrics returns all metrics, in listing order.
func Metrics() []Metric { return slices.Clone(metrics) }

// RatioSuffix ends the names of metrics that are relative to the reference.
const RatioSuffix = "_ratio"

var metrics = append([]Metric{
	{"makespan_h", "makespan, hours", func(o, _ *Outcome) float64 { return o.Result.Metrics.Makespan.Hours() }, geomean, nil},
	{"jct_mean_min", "mean JCT, minutes", func(o, _ *Outcome) float64 { return o.Result.Metrics.MeanJCT.Minutes() }, geomean, nil},
	{"jct_p95_min", "95th percentile of JCT, minutes", func(o, _ *Outcome) float64 { return o.Result.Metrics.P95JCT.Minutes() }, geomean, nil},
	{"waiting_mean_min", "mean waiting, minutes", func(o, _ *Outcome) float64 { return o.Result.Metrics.MeanWaiting.Minutes() }, geomean, nil},
	{"execution_mean_min", "mean execution, minutes", func(o, _ *Outcome) float64 { return o.Result.Metrics.MeanExecution.Minutes() }, geomean, nil},
	{"energy_mj", "energy, MJ", func(o, _ *Outcome) float64 { return o.Result.Metrics.EnergyJ / 1e6 }, geomean, nil},
	{"smact_mean", "SM activity, mean over time and GPUs", func(o, _ *Outcome) float64 { return o.Result.Metrics.MeanSMACT }, geomean, nil},
	{"memory_mean_gib", "memory in use per GPU, mean over time and GPUs, GiB", func(o, _ *Outcome) float64 { return o.Result.Metrics.MeanMemory.GiB() }, geomean, nil},
	{"makespan_ratio", "makespan relative to " + ReferencePreset, ratio(func(o *Outcome) float64 { return o.Result.Metrics.Makespan.Seconds() }), geomean, nil},
	{"jct_mean_ratio", "mean JCT relative to " + ReferencePreset, ratio(func(o *Outcome) float64 { return o.Result.Metrics.MeanJCT.Seconds() }), geomean, nil},
	{"jct_p95_ratio", "95th percentile of JCT relative to " + ReferencePreset, ratio(func(o *Outcome) float64 { return o.Result.Metrics.P95JCT.Seconds() }), geomean, nil},
	{"waiting_mean_ratio", "mean waiting relative to " + ReferencePreset, ratio(func(o *Outcome) float64 { return o.Result.Metrics.MeanWaiting.Seconds() }), geomean, nil},
	{"execution_mean_ratio", "mean time running, failed attempts included, relative to " + ReferencePreset, ratio(ran), geomean, nil},
	{"energy_ratio", "energy relative to " + ReferencePreset, ratio(func(o *Outcome) float64 { return o.Result.Metrics.EnergyJ }), geomean, nil},
	{"makespan_to_bound", "makespan relative to the lower bound", func(o, _ *Outcome) float64 {
		return quotient(o.Result.Metrics.Makespan.Seconds(), o.Result.Metrics.LowerBound.Seconds())
	}, geomean, nil},
	{"slowdown_max", "longest execution of any task relative to alone", func(o, _ *Outcome) float64 { return o.Result.Metrics.WorstSlowdown }, slices.Max[[]float64], nil},
	{"above_cap", "share of the tasks slowed down above 1.6", func(o, _ *Outcome) float64 { return o.Result.Metrics.AboveCap }, mean, nil},
	{"ooms", "attempts that ran out of GPU memory", func(o, _ *Outcome) float64 { return float64(o.Result.Metrics.OOMs) }, sum, nil},
	{"relaunches", "attempts after a task's first", func(o, _ *Outcome) float64 { return float64(o.Result.Metrics.Relaunches) }, sum, nil},
	{"failed", "tasks that did not succeed", func(o, _ *Outcome) float64 { return float64(o.Result.Metrics.Failed) }, sum, nil},
	{"lost_share", "GPU time of failed attempts, share of all", func(o, _ *Outcome) float64 { return o.LostShare() }, mean, nil},
	{"lost_gpu_s", "GPU-seconds wasted: lost to failed attempts", func(o, _ *Outcome) float64 { return o.Result.Metrics.LostGPUTime.Seconds() }, sum, nil},
}, append(suspendMetrics, maintenanceMetrics...)...)

// metricNamed returns the metric called name.
func metricNamed(name string) (*Metric, bool) {
	i := slices.IndexFunc(metrics, func(m Metric) bool { return m.Name == name })
	if i < 0 {
		return nil, false
	}
	return &metrics[i], true
}

// MetricNames returns the names of [Metrics].
func MetricNames() []string {
	names := make([]string, len(metrics))
	for i := range metrics {
		names[i] = metrics[i].Name
	}
	return names
}

// Measure returns a metric of the outcomes of one row over several traces.
func Measure(name string, outcomes, references []*Outcome) float64 {
	m, ok := metricNamed(name)
	if !ok {
		panic("no metric " + name) // a bug of carma
	}
	if m.pool != nil {
		return m.pool(outcomes)
	}
	values := make([]float64, len(outcomes))
	for i := range outcomes {
		values[i] = m.of(outcomes[i], references[i])
	}
	if len(values) == 1 {
		return values[0]
	}
	return m.over(values)
}

// ratio returns a function that returns 0 for a row in which more tasks failed than in
// the reference, because less work cannot be compared.
func ratio(of func(*Outcome) float64) func(o, reference *Outcome) float64 {
	return func(o, reference *Outcome) float64 {
		if o.Result.Metrics.Failed > reference.Result.Metrics.Failed {
			return 0
		}
		return quotient(of(o), of(reference))
	}
}

// quotient returns a/b, or 0 if b is 0.
func quotient(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// ran returns the mean time running over all attempts.
func ran(o *Outcome) float64 {
	return (o.Result.Metrics.MeanExecution + o.Result.Metrics.MeanLost).Seconds()
}

// LostShare returns the GPU time of failed attempts as a share of the GPU time of all
// attempts.
func (o *Outcome) LostShare() float64 {
	var lost, all time.Duration
	for i := range o.Result.Tasks {
		t := &o.Result.Tasks[i]
		l := t.Record.Lifetimes()
		lost += l.Lost * time.Duration(t.Task.GPUs)
		all += (l.Lost + l.Execution) * time.Duration(t.Task.GPUs)
	}
	return quotient(lost.Seconds(), all.Seconds())
}

// geomean returns the geometric mean, or 0 if a value is not positive.
func geomean(values []float64) float64 {
	logs := 0.0
	for _, v := range values {
		if v <= 0 {
			return 0
		}
		logs += math.Log(v)
	}
	return math.Exp(logs / float64(len(values)))
}

func sum(values []float64) float64 {
	total := 0.0
	for _, v := range values {
		total += v
	}
	return total
}

func mean(values []float64) float64 { return sum(values) / float64(len(values)) }
