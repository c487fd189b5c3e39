package traces

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"carma/configs/traces/arrivals"
	"carma/configs/traces/joblog"
	"carma/configs/traces/mixes"
	"carma/configs/workloads"
)

// Arrivals returns the load of a trace. Each run time is the measured run time of the
// task's workload without co-location, in the trace's campaign.
func (t Trace) Arrivals() (arrivals.List, error) {
	var l arrivals.List
	for _, task := range t.Tasks {
		w, err := workloads.Find(task.Workload)
		if err != nil {
			return l, err // checked when the trace was read
		}
		c, err := w.Campaign(t.Campaign)
		if err != nil {
			return l, err
		}
		l.Arrivals = append(l.Arrivals, arrivals.Arrival{At: task.At, GPUs: task.GPUs, RunTime: c.RunTime, Job: task.Name, User: task.User})
	}
	return l, nil
}

// MapOptions configure how [Map] chooses workloads.
type MapOptions struct {
	Name, Source string
	Campaign     string // "v1" or "v2", or "" for the default
	Seed         uint64
	Mix          mixes.Mix // [mixes.Default] if zero
	// Match selects the nearest workload instead of a random one, first by its number of
	// GPUs, then by its run time without co-location. If several workloads are within a
	// tenth of the nearest run time, one of them is drawn.
	Match bool
	// Load, if not 0, stretches or shrinks all gaps by one factor, see
	// [GenerateOptions]; GPUs is the number of GPUs that it refers to, at least 1.
	Load float64
	GPUs int
}

// Map makes a trace from arrivals: each gets a workload from the catalogue. A seed gives
// the same trace as long as the shipped workloads do not change.
func Map(l arrivals.List, o MapOptions) (Trace, error) {
	if len(l.Arrivals) == 0 || len(l.Arrivals) > maxTasks {
		return Trace{}, fmt.Errorf("a trace has 1 to %d tasks, not %d; cut one out with: carma trace sample --tasks %d", maxTasks, len(l.Arrivals), defaultTasks)
	}
	mix := o.Mix
	if mix == (mixes.Mix{}) {
		mix = mixes.Default
	}
	t := Trace{
		Name: o.Name, Source: o.Source, Campaign: cmp.Or(o.Campaign, workloads.DefaultCampaign),
		Description: fmt.Sprintf("%d tasks; workloads drawn from seed %d: %s", len(l.Arrivals), o.Seed, mix),
	}
	if o.Match {
		t.Description = fmt.Sprintf("%d tasks; workloads nearest by GPUs and run time, seed %d", len(l.Arrivals), o.Seed)
	}
	pool, d := mixes.Of(t.Campaign), mixes.NewDice(o.Seed)
	all := pool.All()
	for i, a := range l.Arrivals {
		if a.At > maxAt {
			return Trace{}, fmt.Errorf("task %d arrives more than ten years after the first", i+1)
		}
		w := workloads.Profile{}
		switch {
		case !o.Match:
			w = pool.Draw(mix, d)
		case a.RunTime == joblog.Unknown:
			return Trace{}, fmt.Errorf("task %d has no known run time to match; leave --match out to draw by weights", i+1)
		default:
			w = nearestTo(all, t.Campaign, a, d)
		}
		name := a.Job
		if _, err := workloads.Find(name); err == nil {
			name = "" // a workload's name, but not of this task's workload
		}
		t.Tasks = append(t.Tasks, Task{At: a.At, Workload: w.Name, GPUs: w.GPUs, Name: name, User: a.User})
	}
	if o.Load > 0 {
		return t, t.stretch(o.Load, o.GPUs)
	}
	return t, nil
}

// alike is the largest ratio of run times at which workloads are equally near.
const alike = 1.1

// nearestTo returns the workload that is nearest by its number of GPUs, then by the ratio
// of run times. It draws one of several equally near workloads.
func nearestTo(all []workloads.Profile, campaign string, a arrivals.Arrival, d mixes.Dice) workloads.Profile {
	type candidate struct {
		w         workloads.Profile
		gpus, run float64 // distances, 0 or more
	}
	list := make([]candidate, len(all))
	least := math.Inf(1)
	for i, w := range all {
		c, _ := w.Campaign(campaign) // all workloads of a pool have this campaign
		list[i] = candidate{w, math.Abs(float64(w.GPUs - a.GPUs)), ratio(c.RunTime, a.RunTime)}
		least = min(least, list[i].gpus)
	}
	list = slices.DeleteFunc(list, func(c candidate) bool { return c.gpus > least })
	best := slices.MinFunc(list, func(x, y candidate) int { return cmp.Compare(x.run, y.run) }).run
	list = slices.DeleteFunc(list, func(c candidate) bool { return c.run > best+math.Log(alike) })
	return list[d.Below(len(list))].w
}

// ratio returns the absolute value of the logarithm of the ratio of two times. A time below
// a second counts as a second.
func ratio(a, b time.Duration) float64 {
	return math.Abs(math.Log(max(a, time.Second).Seconds() / max(b, time.Second).Seconds()))
}
