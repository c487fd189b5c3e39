package study

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"carma/internal/suggest"
	"carma/internal/units"
	"carma/mapper/model"
	"carma/mapper/sim"
)

// suspendingKeys lists the keys that may follow the speed of a copy.
var suspendingKeys = []string{"pause", "host", "leave"}

// ParseSuspending parses how GPUs suspend tasks: the speed of a copy in either direction,
// in GB (10^9 bytes) per second, and deviations from the defaults:
// 5GB/s,pause=0.2s,host=512G. An empty text means that GPUs cannot suspend tasks.
func ParseSuspending(text string) (sim.Suspending, error) {
	var none sim.Suspending
	if text == "" {
		return none, nil
	}
	parts := splitList(text)
	speed, ok := strings.CutSuffix(strings.ToLower(parts[0]), "gb/s")
	rate, err := strconv.ParseFloat(strings.TrimSpace(speed), 64)
	if !ok || err != nil || !(rate >= 0.01 && rate <= 1000) {
		return none, fmt.Errorf("%q is not the speed of a copy; write for example 5GB/s", parts[0])
	}
	s := sim.Suspending{Rate: units.Bytes(rate * 1e9), Pause: sim.SuspendPause, Host: sim.SuspendHost}
	for _, part := range parts[1:] {
		key, value, _ := strings.Cut(part, "=")
		switch key {
		case "pause":
			if s.Pause, err = time.ParseDuration(value); err != nil || s.Pause < 0 || s.Pause > time.Hour {
				return none, fmt.Errorf("pause: %q is not a time; write for example pause=200ms", value)
			}
		case "host":
			if s.Host, err = units.ParseAmount(value); err != nil || s.Host < units.MiB {
				return none, fmt.Errorf("host: %q is not an amount of memory; write for example host=512G", value)
			}
		case "leave":
			if s.Leave, err = strconv.ParseFloat(value, 64); err != nil || !(s.Leave > 0 && s.Leave <= 1) {
				return none, fmt.Errorf("leave: %q is not a share of the tasks; write for example leave=0.5", value)
			}
		default:
			return none, fmt.Errorf("unknown key %q; nearest: %s", key, suggest.Names(key, suspendingKeys, 1)[0])
		}
	}
	return s, nil
}

// suspendingText formats the setting as users type it, or returns "" if GPUs cannot
// suspend tasks.
func suspendingText(s sim.Suspending) string {
	if s == (sim.Suspending{}) {
		return ""
	}
	text := strconv.FormatFloat(float64(s.Rate)/1e9, 'g', -1, 64) + "GB/s"
	if s.Pause != sim.SuspendPause {
		text += ",pause=" + s.Pause.String()
	}
	if s.Host != sim.SuspendHost {
		text += ",host=" + strconv.FormatFloat(s.Host.GiB(), 'g', -1, 64) + "G"
	}
	if s.Leave > 0 {
		text += ",leave=" + strconv.FormatFloat(s.Leave, 'g', -1, 64)
	}
	return text
}

// ParseUrgent parses the share of the tasks that are urgent.
func ParseUrgent(text string) (float64, error) {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || !(f >= 0 && f <= 1) {
		return 0, fmt.Errorf("%q is not a share; write for example 0.1", text)
	}
	return f, nil
}

// urge gives high priority to a share of the tasks, rounded to whole tasks: the tasks
// with the lowest draws from a truth. All others get at most normal priority.
func urge(tasks []sim.Task, share float64, of sim.Truth) []sim.Task {
	if share == 0 {
		return tasks
	}
	tasks = slices.Clone(tasks)
	order := make([]int, len(tasks))
	for i := range order {
		order[i] = i
		tasks[i].Priority = min(tasks[i].Priority, model.Normal)
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(of.Urgency(a), of.Urgency(b)), a-b) })
	for _, i := range order[:int(share*float64(len(tasks))+0.5)] {
		tasks[i].Priority = model.High
	}
	return tasks
}

// urgent reports whether a task has high priority.
func urgent(t *sim.TaskResult) bool { return t.Task.Priority == model.High }

func idle(t *sim.TaskResult) time.Duration { return t.Record.Idle() }

// timesOf returns the times of selected tasks of several outcomes, the shortest first.
func timesOf(all []*Outcome, which func(*sim.TaskResult) bool, of func(*sim.TaskResult) time.Duration) (times []time.Duration) {
	for _, o := range all {
		for i := range o.Result.Tasks {
			if t := &o.Result.Tasks[i]; which(t) {
				times = append(times, of(t))
			}
		}
	}
	slices.Sort(times)
	return times
}

func meanOf(times []time.Duration) float64 {
	total := 0.0
	for _, t := range times {
		total += t.Seconds()
	}
	return quotient(total, float64(len(times)))
}

// The metrics of urgent tasks and of suspensions are over all tasks of all traces,
// because one trace has few urgent tasks.
var suspendMetrics = []Metric{
	{Name: "urgent_waiting_mean_min", Doc: "mean time that urgent tasks were queued, starting or suspended, minutes", pool: func(all []*Outcome) float64 {
		return meanOf(timesOf(all, urgent, idle)) / 60
	}},
	{Name: "urgent_waiting_p95_min", Doc: "95th percentile of that, minutes", pool: func(all []*Outcome) float64 {
		return sim.Quantile(timesOf(all, urgent, idle), 0.95).Minutes()
	}},
	{Name: "urgent_1gpu_waiting_p95_s", Doc: "95th percentile of that, of urgent tasks on one GPU, seconds", pool: func(all []*Outcome) float64 {
		return sim.Quantile(timesOf(all, func(t *sim.TaskResult) bool { return urgent(t) && t.Task.GPUs == 1 }, idle), 0.95).Seconds()
	}},
	{Name: "others_jct_mean_min", Doc: "mean JCT of the tasks that are not urgent and do not pause, minutes", over: geomean, of: func(o, _ *Outcome) float64 {
		return meanOf(timesOf([]*Outcome{o}, func(t *sim.TaskResult) bool { return !urgent(t) && !pauses(t) }, jct)) / 60
	}},
	{Name: "stretched_p99", Doc: "99th percentile of the time from the first start to the end, relative to alone", pool: func(all []*Outcome) float64 {
		var list []float64
		for _, o := range all {
			for i := range o.Result.Tasks {
				if f := o.Result.Tasks[i].Record.Stretched(); f > 0 {
					list = append(list, f)
				}
			}
		}
		slices.Sort(list)
		return sim.Quantile(list, 0.99)
	}},
	{Name: "suspends", Doc: "how often tasks were suspended", over: sum, of: func(o, _ *Outcome) float64 { return float64(o.Result.Metrics.Suspends) }},
	{Name: "away_p95_min", Doc: "95th percentile of the time of a suspension, minutes", pool: func(all []*Outcome) float64 { return sim.Quantile(awayTimes(all), 0.95).Minutes() }},
	{Name: "away_max_min", Doc: "longest suspension, minutes", pool: func(all []*Outcome) float64 { return sim.Quantile(awayTimes(all), 1).Minutes() }},
	{Name: "copies_s", Doc: "time in which suspended tasks were copied, both ways, seconds", over: sum, of: func(o, _ *Outcome) float64 { return o.Result.Metrics.Copies.Seconds() }},
}

func jct(t *sim.TaskResult) time.Duration { return t.Record.Lifetimes().JCT }

// awayTimes returns the times of the suspensions, the shortest first.
func awayTimes(all []*Outcome) (times []time.Duration) {
	for _, o := range all {
		for i := range o.Result.Tasks {
			for _, s := range o.Result.Tasks[i].Record.Stretches {
				times = append(times, s.To.Sub(s.From))
			}
		}
	}
	slices.Sort(times)
	return times
}
