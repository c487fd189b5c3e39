package sim

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strings"
	"time"

	"carma/internal/units"
)

// Truth contains the differences between the modelled world and the scheduler's
// assumptions. The zero Truth is the model itself: the fitted interference, and the given
// run times and activity of the tasks. All random draws follow from Seed, so equal truths
// give equal worlds.
type Truth struct {
	Seed uint64
	// Pair is the standard deviation of the log of a factor on the speed of one kind of
	// task beside another, with one factor for each ordered pair of names.
	Pair float64
	// Time is the standard deviation of the log of a factor on a task's run time,
	// Activity on a name's SM and DRAM activity.
	Time, Activity float64
	// Memory is the standard deviation of the log of a factor on a name's GPU memory, which
	// the estimator does not know; a task needs at most the memory of the smallest card.
	Memory float64
	// Growth is the share of the tasks whose memory grows late in the run, by
	// lateGrowth, at a point between lateFrom and lateTo of it.
	Growth float64
	// Preallocate is the share of the names whose tasks allocate the share preallocated of a
	// card's memory when they start, regardless of their need.
	Preallocate float64
	// Silent is the share of the tasks whose output does not show their speed.
	Silent float64
	// Processes is the share of the tasks whose samples contain the time in which their
	// kernels run (per-process utilization). Its error relative to the model is
	// processError, by name.
	Processes float64
	// Idle is the share of the tasks that are idle for [IdleFor] in the middle of their
	// work, and keep their memory.
	Idle float64
	// Speeds contains measured speeds of the first task of a pair next to the second, by
	// name, or is nil. They replace the model's speeds if only these two share a GPU.
	Speeds map[[2]string]float64
	// SpeedsFrom is the source of Speeds.
	SpeedsFrom string
}

// Late growth: an evaluation, a larger batch, a second stage.
const (
	lateGrowth = 0.4
	lateFrom   = 0.2
	lateTo     = 0.8
	// processError is the standard deviation of the time in which kernels run, around
	// interference.Load.Busy, whose error is 0.06 on average in published data.
	processError = 0.075
	// preallocated is the share of a card's memory that JAX allocates by default.
	preallocated = 0.75
)

// String describes the differences from the model, in the form that ParseTruth reads.
func (t Truth) String() string {
	var parts []string
	for _, k := range t.keys() {
		if *k.value != 0 {
			parts = append(parts, fmt.Sprintf("%s=%v", k.name, *k.value))
		}
	}
	if t.Speeds != nil {
		parts = append(parts, "pairs="+t.SpeedsFrom)
	}
	if len(parts) == 0 {
		return "model" // regardless of the seed
	}
	if t.Seed != 0 {
		parts = append(parts, fmt.Sprintf("seed=%d", t.Seed))
	}
	return strings.Join(parts, ",")
}

// truthKey is one number of a truth.
type truthKey struct {
	name  string
	value *float64
	most  float64
	what  string
}

func (t *Truth) keys() []truthKey {
	const sd, share = "a standard deviation of a logarithm", "a share"
	return []truthKey{
		{"pair", &t.Pair, 2, sd}, {"time", &t.Time, 2, sd}, {"activity", &t.Activity, 2, sd}, {"memory", &t.Memory, 2, sd},
		{"growth", &t.Growth, 1, share}, {"preallocate", &t.Preallocate, 1, share}, {"silent", &t.Silent, 1, share}, {"processes", &t.Processes, 1, share},
		{"idle", &t.Idle, 1, share},
	}
}

// TruthKeys lists the names of a truth's numbers.
func TruthKeys() []string {
	var names []string
	for _, k := range new(Truth).keys() {
		names = append(names, k.name)
	}
	return names
}

// Set sets the number called name, which must be one of [TruthKeys].
func (t *Truth) Set(name string, value float64) error {
	for _, k := range t.keys() {
		if k.name == name {
			*k.value = value
		}
	}
	return t.check()
}

func (t Truth) check() error {
	for _, k := range t.keys() {
		if !(*k.value >= 0 && *k.value <= k.most) {
			return fmt.Errorf("%s is %v; %s is between 0 and %v", k.name, *k.value, k.what, k.most)
		}
	}
	return nil
}

// The purposes of draws, so that no two draws are the same.
const (
	drawPair = iota
	drawTime
	drawActivity
	drawGrowth
	drawGrowthAt
	drawPreallocate
	drawSilent
	drawPace
	drawProcesses
	drawBusy
	drawUrgent
	drawMemory
	drawLeave
	drawIdle
	drawIdleAt
)

// uniform draws between 0 and 1, open at both ends.
func (t Truth) uniform(what int, of ...any) float64 {
	h := fnv.New64a()
	fmt.Fprint(h, t.Seed, what, len(of))
	for _, o := range of {
		fmt.Fprintf(h, "|%v", o)
	}
	return (float64(mix(h.Sum64())>>11) + 0.5) / (1 << 53)
}

// Urgency draws a number for a task, by its place in order of arrival. The urgent tasks
// are the tasks with the lowest draws.
func (t Truth) Urgency(i int) float64 { return t.uniform(drawUrgent, i) }

// mix spreads the bits of a hash (the finalizer of splitmix64).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// factor draws from a lognormal distribution with median 1.
func (t Truth) factor(sd float64, what int, of ...any) float64 {
	if sd == 0 {
		return 1
	}
	return math.Exp(sd * math.Sqrt2 * math.Erfinv(2*t.uniform(what, of...)-1))
}

// mostActivity is the highest activity that a perturbed task can have.
const mostActivity = 0.98

// task returns a task with its true behaviour. i is its place in order of arrival.
func (t Truth) task(i int, in *Task) *Task {
	if t.Time == 0 && t.Activity == 0 {
		return in
	}
	out := *in
	out.SoloTime = max(time.Second, time.Duration(float64(in.SoloTime)*t.factor(t.Time, drawTime, i)))
	f := t.factor(t.Activity, drawActivity, in.Name)
	out.Loads = slices.Clone(in.Loads)
	for g := range out.Loads {
		l := &out.Loads[g]
		l.SMACT, l.DRAMA = perturbed(l.SMACT, f), perturbed(l.DRAMA, f)
	}
	return &out
}

func perturbed(share, factor float64) float64 { return min(share*factor, max(share, mostActivity)) }

// plan returns the allocations of a task over its run.
func (t Truth) plan(i int, task *Task, least units.Bytes) []Allocation {
	solo, peaks := task.SoloTime.Seconds(), t.peaks(task, least)
	all := Allocations(solo, task.Context, peaks)
	switch {
	case t.Preallocate > 0 && t.uniform(drawPreallocate, task.Name) < t.Preallocate:
		return preallocation(solo, task.Context, peaks, least)
	case t.Growth > 0 && t.uniform(drawGrowth, i) < t.Growth:
		at := solo * (lateFrom + (lateTo-lateFrom)*t.uniform(drawGrowthAt, i))
		for g, peak := range peaks {
			more := min(units.Bytes(lateGrowth*float64(peak)), least-peak) / units.MiB * units.MiB
			if more > 0 {
				all = append(all, Allocation{max(at, PeaksAt(solo)), g, more})
			}
		}
		slices.SortStableFunc(all, func(a, b Allocation) int { return cmp.Compare(a.At, b.At) })
	}
	return all
}

// peaks returns the peak memory of a task on each of its GPUs.
func (t Truth) peaks(task *Task, least units.Bytes) []units.Bytes {
	if t.Memory == 0 {
		return task.Memory
	}
	f := t.factor(t.Memory, drawMemory, task.Name)
	peaks := slices.Clone(task.Memory)
	for g, peak := range peaks {
		peaks[g] = min(peak.Scale(f), max(peak, least))
	}
	return peaks
}

// preallocation returns the allocations on each GPU as the program starts: the
// framework's default, or the task's need if that is more.
func preallocation(solo float64, most units.Bytes, peaks []units.Bytes, least units.Bytes) []Allocation {
	var all []Allocation
	for g, peak := range peaks {
		context := min(most, peak)
		all = append(all, Allocation{0, g, context})
		all = append(all, Allocation{TrainsFrom(solo) / 2, g, max(peak, units.Bytes(preallocated*float64(least))) - context})
	}
	slices.SortStableFunc(all, func(a, b Allocation) int { return cmp.Compare(a.At, b.At) })
	return all
}

// slowed applies the truth to the model's speeds of tasks that share a GPU.
func (t Truth) slowed(uses []*use, speeds []float64) {
	if len(speeds) < 2 || t.Pair == 0 && t.Speeds == nil {
		return
	}
	for i, u := range uses {
		f := 1.0
		for j, other := range uses {
			if i == j {
				continue
			}
			f *= t.factor(t.Pair, drawPair, u.run.task.Name, other.run.task.Name)
			if s, ok := t.Speeds[[2]string{u.run.task.Name, other.run.task.Name}]; ok && len(uses) == 2 {
				speeds[i] = s
			}
		}
		speeds[i] = max(slowest, min(1, speeds[i]*f))
	}
}

// most returns the largest share of a limited resource that tasks on one GPU ever use: 1
// in the model. Two tasks with measured speeds may use more. With random factors there is
// no limit.
func (t Truth) most(on Sharing, tasks []*Task) float64 {
	if t.Pair > 0 {
		return math.Inf(1)
	}
	most := 1.0
	loads := map[string][]Load{}
	for _, task := range tasks {
		loads[task.Name] = task.Loads
	}
	for pair, speed := range t.Speeds {
		other := t.Speeds[[2]string{pair[1], pair[0]}]
		for _, a := range loads[pair[0]] {
			for _, b := range loads[pair[1]] {
				x, y := on.takes(a), on.takes(b)
				for k := range x {
					most = max(most, x[k]*min(1, speed)+y[k]*min(1, other))
				}
			}
		}
	}
	return most
}

// slowest is the lowest speed of a task that shares a GPU.
const slowest = 0.02
