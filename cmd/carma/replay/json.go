package replay

import "carma/mapper/sim/study"

// policyJSON is one run. Times are seconds; ratios are relative to the reference.
// docs/replay.md documents it; a field never changes its meaning.
type policyJSON struct {
	Policy     string           `json:"policy"`
	Estimator  string           `json:"estimator"`
	Preset     bool             `json:"preset"`
	Score      string           `json:"score"`
	LookAhead  int              `json:"look_ahead"`
	Tasks      int              `json:"tasks"`
	Succeeded  int              `json:"succeeded"`
	Failed     int              `json:"failed"`
	OOMs       int              `json:"ooms"`
	Relaunches int              `json:"relaunches"`
	Makespan   float64          `json:"makespan_s"`
	MeanJCT    float64          `json:"jct_mean_s"`
	MedianJCT  float64          `json:"jct_median_s"`
	P95JCT     float64          `json:"jct_p95_s"`
	WorstJCT   float64          `json:"jct_max_s"`
	Waiting    float64          `json:"waiting_mean_s"`
	Execution  float64          `json:"execution_mean_s"`
	Lost       float64          `json:"lost_mean_s"`
	LostGPU    float64          `json:"lost_gpu_s"`
	LostShare  float64          `json:"lost_share"`
	Slowdown   float64          `json:"slowdown_max"`
	AboveCap   float64          `json:"above_cap"`
	SMACT      float64          `json:"smact_mean"`
	Memory     int64            `json:"memory_mean_bytes"`
	Energy     float64          `json:"energy_j"`
	Idle       float64          `json:"energy_idle_j"`
	BoundRatio float64          `json:"makespan_to_bound"`
	RatioTo    string           `json:"ratio_to"`
	Ratios     ratiosJSON       `json:"ratios"`
	Whole      []study.WholeGPU `json:"whole_gpu,omitempty"`
	Users      []userJSON       `json:"users,omitempty"`
	Suspends   int              `json:"suspends"`
	Copies     float64          `json:"copies_s"`
	AwayP95    float64          `json:"away_p95_s"`
	AwayMost   float64          `json:"away_max_s"`
	Stretched  float64          `json:"stretched_p99"`
	List       []simJSON        `json:"list,omitempty"`
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
	User      string  `json:"user,omitempty"`
	Energy    float64 `json:"energy_j"`
	Priority  string  `json:"priority"`
	Suspends  int     `json:"suspends"`
	Away      float64 `json:"away_s"`
}

// userJSON sums the tasks of one user.
type userJSON struct {
	User   string  `json:"user"`
	Tasks  int     `json:"tasks"`
	GPU    float64 `json:"gpu_s"`
	Energy float64 `json:"energy_j"`
}

type traceJSON struct {
	Trace      string       `json:"trace"`
	Server     string       `json:"server"`
	GPUs       int          `json:"gpus"`
	StartUp    float64      `json:"start_up_s"`
	Sharing    string       `json:"sharing"`
	Coarse     bool         `json:"coarse"`
	Know       string       `json:"know"`
	Repeats    bool         `json:"repeats"`
	Truth      string       `json:"truth"`
	Suspend    string       `json:"suspend"`
	Urgent     float64      `json:"urgent"`
	Drain      string       `json:"drain"`
	LowerBound float64      `json:"lower_bound_s"`
	Reference  policyJSON   `json:"reference"`
	Policies   []policyJSON `json:"policies"`
}

// overallJSON is one row over all traces, with each metric by name.
type overallJSON struct {
	Policy    string             `json:"policy"`
	Estimator string             `json:"estimator"`
	Sharing   string             `json:"sharing"`
	Coarse    bool               `json:"coarse"`
	Know      string             `json:"know"`
	Repeats   bool               `json:"repeats"`
	Truth     string             `json:"truth"`
	Suspend   string             `json:"suspend"`
	Urgent    float64            `json:"urgent"`
	Drain     string             `json:"drain"`
	Metrics   map[string]float64 `json:"metrics"`
}

// json returns the same as JSON, with each task's times.
func (v *virtualReplay) json() any {
	list, overall := []traceJSON{}, []overallJSON{}
	for _, p := range v.parts {
		list, overall = append(list, p.json()...), append(overall, p.overallJSON()...)
	}
	return struct {
		Traces  []traceJSON   `json:"traces"`
		Overall []overallJSON `json:"overall"`
	}{list, overall}
}

func (v *part) json() []traceJSON {
	list := make([]traceJSON, len(v.all))
	c := v.Conditions()
	for i := range v.all {
		r := &v.all[i]
		list[i] = traceJSON{
			Trace: r.Trace.Name, Server: v.Server.Name, GPUs: len(v.Server.GPUs), StartUp: v.StartUp.Seconds(),
			Sharing: c.Sharing.String(), Coarse: c.Coarse, Know: string(c.Know), Repeats: !c.Distinct, Truth: c.Truth.String(), Suspend: c.SuspendText(), Urgent: c.Urgent, Drain: c.DrainText(),
			LowerBound: r.Reference.Result.Metrics.LowerBound.Seconds(), Reference: outcomeJSON(r.Reference, r.Reference),
		}
		list[i].Reference.List, list[i].Reference.Users = nil, nil
		for j := range r.Outcomes {
			list[i].Policies = append(list[i].Policies, outcomeJSON(&r.Outcomes[j], r.Reference))
		}
	}
	return list
}

func (v *part) overallJSON() []overallJSON {
	var list []overallJSON
	c := v.Conditions()
	for _, row := range v.Rows {
		outcomes, references := study.Across(v.all, row.Label)
		o := overallJSON{row.Name, row.Estimator, c.Sharing.String(), c.Coarse, string(c.Know), !c.Distinct, c.Truth.String(), c.SuspendText(), c.Urgent, c.DrainText(), map[string]float64{}}
		for _, m := range study.Metrics() {
			o.Metrics[m.Name] = study.Measure(m.Name, outcomes, references)
		}
		list = append(list, o)
	}
	return list
}

func outcomeJSON(o, reference *study.Outcome) policyJSON {
	m := &o.Result.Metrics
	ratio := func(name string) float64 {
		return study.Measure(name+study.RatioSuffix, []*study.Outcome{o}, []*study.Outcome{reference})
	}
	out := policyJSON{
		Policy: o.Row.Name, Estimator: o.Row.Estimator, Preset: o.Row.Preset, Score: string(o.Row.Score), LookAhead: o.Row.Options.LookAhead,
		Tasks: m.Tasks, Succeeded: m.Succeeded, Failed: m.Failed, OOMs: m.OOMs, Relaunches: m.Relaunches,
		Makespan: m.Makespan.Seconds(), MeanJCT: m.MeanJCT.Seconds(), MedianJCT: m.MedianJCT.Seconds(),
		P95JCT: m.P95JCT.Seconds(), WorstJCT: m.WorstJCT.Seconds(),
		Waiting: m.MeanWaiting.Seconds(), Execution: m.MeanExecution.Seconds(), Lost: m.MeanLost.Seconds(),
		LostGPU: m.LostGPUTime.Seconds(), LostShare: o.LostShare(), Slowdown: m.WorstSlowdown, AboveCap: m.AboveCap, SMACT: m.MeanSMACT, Memory: int64(m.MeanMemory),
		Energy: m.EnergyJ, Idle: m.IdleJ, RatioTo: reference.Policy, Whole: o.Whole,
		Suspends: m.Suspends, Copies: m.Copies.Seconds(), AwayP95: m.P95Away.Seconds(), AwayMost: m.LongestAway.Seconds(), Stretched: m.P99Stretched,
		Ratios: ratiosJSON{ratio("makespan"), ratio("jct_mean"), ratio("jct_p95"), ratio("waiting_mean"), ratio("energy")},
	}
	if m.LowerBound > 0 {
		out.BoundRatio = m.Makespan.Seconds() / m.LowerBound.Seconds()
	}
	for _, u := range o.Users() {
		out.Users = append(out.Users, userJSON{u.User, u.Tasks, u.GPUTime.Seconds(), u.EnergyJ})
	}
	out.List = make([]simJSON, len(o.Result.Tasks))
	for i := range o.Result.Tasks {
		t := &o.Result.Tasks[i]
		l := t.Record.Lifetimes()
		out.List[i] = simJSON{
			int64(t.ID), t.Task.Name, string(t.Phase), t.Reason, len(t.Record.Attempts), t.Task.At.Seconds(),
			l.JCT.Seconds(), l.Waiting.Seconds(), l.Execution.Seconds(), l.Lost.Seconds(), t.Record.Slowdown(),
			t.Task.User, t.EnergyJ, t.Task.Priority.String(), len(t.Record.Stretches), l.Away.Seconds(),
		}
	}
	return out
}
