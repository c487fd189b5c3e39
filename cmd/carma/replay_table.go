package main

import (
	"fmt"
	"io"
	"time"

	"carma/mapper"
	"carma/mapper/sim"
)

// replayWidth is what a table of a replay fits.
const replayWidth = 100

// print writes the table of one trace: a row per policy.
func (v *virtualReplay) print(w io.Writer, r *replayedTrace) error {
	m := r.outcomes[0].result.Metrics
	title := fmt.Sprintf(": %d tasks on %d GPUs of %s, estimator %s, lower bound %s",
		m.Tasks, len(v.server.GPUs), v.server.Name, v.estimator, hours(m.LowerBound))
	fmt.Fprintln(w, shorten(printable(r.trace.Name), max(1, replayWidth-len(title)))+title)
	if v.sharing != sim.MPS {
		fmt.Fprintf(w, "tasks share a GPU by %s, not %s\n", v.sharing, sim.MPS)
	}
	exclusive := r.reference()
	t := &table{columns: []column{
		{title: "POLICY", least: 8, share: 1}, {title: "MAKESPAN", right: true}, {title: "JCT", right: true}, {title: "P95", right: true},
		{title: "WAIT", right: true}, {title: "EXEC", right: true}, {title: "OOMS", right: true}, {title: "LOST", right: true},
		{title: "SLOWEST", right: true}, {title: "ENERGY", right: true},
	}}
	if exclusive != nil {
		t.columns = append(t.columns, column{title: "RATIO", right: true})
	}
	for i := range r.outcomes {
		o := &r.outcomes[i]
		m := &o.result.Metrics
		row := []string{
			o.policy, hours(m.Makespan), hours(m.MeanJCT), hours(m.P95JCT), hours(m.MeanWaiting), hours(m.MeanExecution),
			fmt.Sprint(m.OOMs), hours(m.LostGPUTime), fmt.Sprintf("%.2fx", m.WorstSlowdown), megajoules(m.EnergyJ),
		}
		if exclusive != nil {
			row = append(row, fmt.Sprintf("%.3f", m.RatioTo(exclusive.result.Metrics).Makespan))
		}
		t.add(row...)
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
	return nil
}

// hours is a time for a column, to two units: 120h, 7h02m, 12m05s.
func hours(d time.Duration) string {
	s := int64(d.Round(time.Second) / time.Second)
	switch {
	case s >= 100*3600:
		return fmt.Sprintf("%dh", int64(d.Round(time.Hour)/time.Hour))
	case s >= 3600:
		m := int64(d.Round(time.Minute) / time.Minute)
		return fmt.Sprintf("%dh%02dm", m/60, m%60)
	case s >= 60:
		return fmt.Sprintf("%dm%02ds", s/60, s%60)
	}
	return fmt.Sprintf("%ds", s)
}

// megajoules is an energy for a column.
func megajoules(j float64) string {
	if j >= 1e8 {
		return fmt.Sprintf("%.0f MJ", j/1e6)
	}
	return fmt.Sprintf("%.2f MJ", j/1e6)
}

// policyJSON is one run. Times are seconds; ratios are to the run of policy
// exclusive, or to the first where that is not among them.
type policyJSON struct {
	Policy     string     `json:"policy"`
	Tasks      int        `json:"tasks"`
	Succeeded  int        `json:"succeeded"`
	Failed     int        `json:"failed"`
	OOMs       int        `json:"ooms"`
	Relaunches int        `json:"relaunches"`
	Makespan   float64    `json:"makespan_s"`
	MeanJCT    float64    `json:"jct_mean_s"`
	MedianJCT  float64    `json:"jct_median_s"`
	P95JCT     float64    `json:"jct_p95_s"`
	WorstJCT   float64    `json:"jct_max_s"`
	Waiting    float64    `json:"waiting_mean_s"`
	Execution  float64    `json:"execution_mean_s"`
	Lost       float64    `json:"lost_mean_s"`
	LostGPU    float64    `json:"lost_gpu_s"`
	Slowdown   float64    `json:"slowdown_max"`
	SMACT      float64    `json:"smact_mean"`
	Memory     int64      `json:"memory_mean_bytes"`
	Energy     float64    `json:"energy_j"`
	BoundRatio float64    `json:"makespan_to_bound"`
	RatioTo    string     `json:"ratio_to"`
	Ratios     ratiosJSON `json:"ratios"`
	List       []simJSON  `json:"list"`
}

type ratiosJSON struct {
	Makespan float64 `json:"makespan"`
	MeanJCT  float64 `json:"jct_mean"`
	P95JCT   float64 `json:"jct_p95"`
	Waiting  float64 `json:"waiting_mean"`
	Energy   float64 `json:"energy"`
}

type simJSON struct {
	ID        int64   `json:"id"`
	Workload  string  `json:"workload"`
	Phase     string  `json:"phase"`
	Reason    string  `json:"reason,omitempty"`
	Attempts  int     `json:"attempts"`
	Submitted float64 `json:"submitted_s"`
	JCT       float64 `json:"jct_s"`
	Waiting   float64 `json:"waiting_s"`
	Execution float64 `json:"execution_s"`
	Lost      float64 `json:"lost_s"`
	Slowdown  float64 `json:"slowdown"`
}

type traceJSON struct {
	Trace      string       `json:"trace"`
	Server     string       `json:"server"`
	GPUs       int          `json:"gpus"`
	Estimator  string       `json:"estimator"`
	StartUp    float64      `json:"start_up_s"`
	LookAhead  int          `json:"look_ahead"`
	Sharing    string       `json:"sharing"`
	LowerBound float64      `json:"lower_bound_s"`
	Policies   []policyJSON `json:"policies"`
}

// json is the same for programs, with each task's times.
func (v *virtualReplay) json(all []replayedTrace) any {
	list := make([]traceJSON, len(all))
	for i := range all {
		r := &all[i]
		list[i] = traceJSON{
			Trace: r.trace.Name, Server: v.server.Name, GPUs: len(v.server.GPUs), Estimator: v.estimator,
			StartUp: v.startUp.Seconds(), LookAhead: v.lookAhead, Sharing: v.sharing.String(),
			LowerBound: r.outcomes[0].result.Metrics.LowerBound.Seconds(),
		}
		first := r.reference()
		if first == nil {
			first = &r.outcomes[0]
		}
		for j := range r.outcomes {
			list[i].Policies = append(list[i].Policies, r.outcomes[j].json(first))
		}
	}
	return list
}

func (o *outcome) json(first *outcome) policyJSON {
	m := &o.result.Metrics
	ratios := m.RatioTo(first.result.Metrics)
	out := policyJSON{
		Policy: o.policy, Tasks: m.Tasks, Succeeded: m.Succeeded, Failed: m.Failed, OOMs: m.OOMs, Relaunches: m.Relaunches,
		Makespan: m.Makespan.Seconds(), MeanJCT: m.MeanJCT.Seconds(), MedianJCT: m.MedianJCT.Seconds(),
		P95JCT: m.P95JCT.Seconds(), WorstJCT: m.WorstJCT.Seconds(),
		Waiting: m.MeanWaiting.Seconds(), Execution: m.MeanExecution.Seconds(), Lost: m.MeanLost.Seconds(),
		LostGPU: m.LostGPUTime.Seconds(), Slowdown: m.WorstSlowdown, SMACT: m.MeanSMACT, Memory: int64(m.MeanMemory),
		Energy: m.EnergyJ, RatioTo: first.policy,
		Ratios: ratiosJSON{ratios.Makespan, ratios.MeanJCT, ratios.P95JCT, ratios.MeanWaiting, ratios.Energy},
	}
	if m.LowerBound > 0 {
		out.BoundRatio = m.Makespan.Seconds() / m.LowerBound.Seconds()
	}
	out.List = make([]simJSON, len(o.result.Tasks))
	for i := range o.result.Tasks {
		t := &o.result.Tasks[i]
		l := t.Record.Lifetimes()
		out.List[i] = simJSON{
			int64(t.ID), t.Task.Name, string(t.Phase), t.Reason, len(t.Record.Attempts), t.Task.At.Seconds(),
			l.JCT.Seconds(), l.Waiting.Seconds(), l.Execution.Seconds(), l.Lost.Seconds(), t.Record.Slowdown(),
		}
	}
	return out
}
