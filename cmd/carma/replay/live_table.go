package replay

import (
	"fmt"
	"strings"
	"time"

	"carma/cmd/carma/cli"
	"carma/internal/units"
	"carma/mapper/model"
	"carma/mapper/sim"
	"carma/runner/api"
)

// replayed is a completed replay.
type replayed struct {
	Trace, Run, Image, Policy, Source string

	Speed   float64
	tasks   []api.Task // in the trace's order
	summary sim.Summary
}

// text returns the table for people: a row per measure, so that runs can be compared side
// by side.
func (d *replayed) text() string {
	s := &d.summary
	var b strings.Builder
	fmt.Fprintf(&b, "%s on %s, policy %s, speed %g\n", cli.Printable(d.Trace), d.Source, d.Policy, d.Speed)
	for _, row := range []struct{ name, value string }{
		{"tasks", fmt.Sprint(s.Tasks)}, {"succeeded", fmt.Sprint(s.Succeeded)}, {"failed", fmt.Sprint(s.Failed)},
		{"GPU OOMs", fmt.Sprint(s.OOMs)}, {"relaunches", fmt.Sprint(s.Relaunches)},
		{"makespan", exact(s.Makespan)}, {"JCT, mean", exact(s.MeanJCT)}, {"JCT, p95", exact(s.P95JCT)},
		{"waiting, mean", exact(s.MeanWaiting)}, {"execution, mean", exact(s.MeanExecution)}, {"lost, mean", exact(s.MeanLost)},
	} {
		fmt.Fprintf(&b, "  %-16s %12s\n", row.name, row.value)
	}
	for i := range d.tasks {
		if t := &d.tasks[i]; t.Phase != string(model.Succeeded) {
			fmt.Fprintf(&b, "  %s (task %d) %s\n", t.Name, t.ID, cli.Printable(cli.Ending(t)))
		}
	}
	return b.String()
}

// exact formats a time to the second, such as 7h02m05s.
func exact(d time.Duration) string {
	s := int64(d.Round(time.Second) / time.Second)
	switch {
	case s >= 3600:
		return fmt.Sprintf("%dh%02dm%02ds", s/3600, s%3600/60, s%60)
	case s >= 60:
		return fmt.Sprintf("%dm%02ds", s/60, s%60)
	}
	return d.Round(100 * time.Millisecond).String()
}

// json returns the same as JSON, with each task's times in seconds.
func (d *replayed) json() any {
	type taskJSON struct {
		ID        int64   `json:"id"`
		Name      string  `json:"name"`
		Workload  string  `json:"workload"`
		Succeeded bool    `json:"succeeded"`
		Attempts  int     `json:"attempts"`
		JCT       float64 `json:"jct_s"`
		Waiting   float64 `json:"waiting_s"`
		Execution float64 `json:"execution_s"`
		Lost      float64 `json:"lost_s"`
	}
	list := make([]taskJSON, len(d.tasks))
	for i := range d.tasks {
		t := &d.tasks[i]
		r := recordOf(t)
		l := r.Lifetimes()
		list[i] = taskJSON{
			t.ID, t.Name, t.Submit.Labels["workload"], r.Succeeded, len(t.Attempts),
			l.JCT.Seconds(), l.Waiting.Seconds(), l.Execution.Seconds(), l.Lost.Seconds(),
		}
	}
	s := &d.summary
	return struct {
		Trace      string     `json:"trace"`
		Run        string     `json:"run"`
		Image      string     `json:"image"`
		Source     string     `json:"source"`
		Policy     string     `json:"policy"`
		Speed      float64    `json:"speed"`
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
		TotalLost  float64    `json:"lost_total_s"`
		List       []taskJSON `json:"list"`
	}{
		d.Trace, d.Run, d.Image, d.Source, d.Policy, d.Speed, s.Tasks, s.Succeeded, s.Failed, s.OOMs, s.Relaunches,
		s.Makespan.Seconds(), s.MeanJCT.Seconds(), s.MedianJCT.Seconds(), s.P95JCT.Seconds(), s.WorstJCT.Seconds(),
		s.MeanWaiting.Seconds(), s.MeanExecution.Seconds(), s.MeanLost.Seconds(), s.TotalLost.Seconds(), list,
	}
}

// recordOf converts the API's task for the metrics.
func recordOf(t *api.Task) sim.Record {
	r := sim.Record{Submitted: instant(t.Submitted), Ended: instant(t.Ended), Succeeded: t.Phase == string(model.Succeeded)}
	for _, at := range t.Attempts {
		r.Attempts = append(r.Attempts, sim.AttemptRecord{
			Launched: instant(at.Launched), Started: instant(at.Started), Ended: instant(at.Ended),
			OK: at.Outcome == string(model.ExitOK), OOM: at.Outcome == string(model.ExitGPUOOM),
		})
		if at.Suspended > 0 { // the time of suspension is unknown, and no metric of a live replay needs it
			r.Stretches = append(r.Stretches, sim.Stretch{Attempt: len(r.Attempts), From: instant(at.Ended).Add(-at.Suspended), To: instant(at.Ended)})
		}
	}
	return r
}

// instant returns 0 for a time that has not been reached.
func instant(t time.Time) units.Instant {
	if t.IsZero() {
		return 0
	}
	return units.InstantOf(t)
}
