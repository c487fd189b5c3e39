package mapper

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/interference"
	"carma/mapper/model"
	"carma/mapper/predict"

	"golang.org/x/sys/unix"
)

// BenchmarkCarma applies the events of a full and busy cluster to policy carma. The tasks
// declare nothing. The cluster has 16, 256 or 1,000 GPUs in machines of eight, 10,000 waiting
// tasks, and 4,000 kinds in the history, to which half of the tasks belong. Memory and activity
// are sampled, and outputs report speeds. It reports the median and the 99th percentile of the
// steps that follow the end of a task, and of all steps.
func BenchmarkCarma(b *testing.B) {
	for _, gpus := range []int{16, 256, 1000} {
		b.Run(fmt.Sprintf("gpus=%d", gpus), func(b *testing.B) {
			l := newLab(DefaultsOf("carma"), 1, gpus, knownKinds)
			l.fill(10_000)
			for until := l.now.Add(20 * time.Minute); l.now < until; {
				l.note(l.s.Step(l.next()))
			}
			l.fill(10_000)
			took := map[string][]time.Duration{}
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			for b.Loop() {
				b.StopTimer()
				ev := l.next()
				b.StartTimer()
				from := cpuTime(b)
				decisions := l.s.Step(ev)
				d := cpuTime(b) - from
				l.note(decisions)
				took["step"] = append(took["step"], d)
				took[ev.Kind()] = append(took[ev.Kind()], d)
			}
			for _, kind := range []string{"exited", "step"} {
				all := took[kind]
				slices.Sort(all)
				if len(all) > 0 {
					b.ReportMetric(float64(all[len(all)/2].Nanoseconds())/1e6, kind+"-p50-ms")
					b.ReportMetric(float64(all[len(all)*99/100].Nanoseconds())/1e6, kind+"-p99-ms")
				}
			}
			if err := l.s.Audit(); err != nil {
				b.Fatal(err)
			}
			if n, q := l.s.Placed(), l.s.QueueLen(); n < gpus || q < 9_000 {
				b.Fatalf("%d tasks run on %d GPUs and %d wait: not the load this is about", n, gpus, q)
			}
		})
	}
}

// cpuTime returns the processor time of this thread, so that other programs do not count.
func cpuTime(b *testing.B) time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		b.Fatal(err)
	}
	return time.Duration(t.Nano())
}

// lab is a cluster under policy carma with unknown tasks.
type lab struct {
	s       *State
	rng     *rand.Rand
	now     units.Instant
	last    model.TaskID
	running []model.TaskID
	coming  []model.Event // the next events
	kinds   int           // number of kinds in the history; tasks have twice as many
}

const knownKinds = 4_000

func newLab(opt model.Options, seed uint64, gpus, kinds int) *lab {
	l := &lab{s: New(opt), rng: rand.New(rand.NewPCG(seed, 2)), now: units.Instant(time.Hour), kinds: kinds}
	var all []model.GPUInfo
	for i := range gpus {
		all = append(all, model.GPUInfo{ID: model.GPUID(fmt.Sprintf("GPU-%08x-7d3e-4f1a-9c55-0123456789ab", i*2654435761)), Node: fmt.Sprintf("node%03d", i/8), Index: i % 8, Capacity: 80 * units.GiB})
	}
	l.s.Step(model.GPUsFound{At: l.now, GPUs: all})
	var known []*predict.KindHistory
	for i := range kinds {
		known = append(known, &predict.KindHistory{Kind: kindName(i), Family: fmt.Sprint(i % 50), Peak: peakOf(i), Alone: time.Duration(5+i%200) * time.Minute})
	}
	l.s.learnKinds(known...)
	return l
}

// fill submits tasks until the given number waits.
func (l *lab) fill(queued int) {
	for l.s.QueueLen() < queued {
		for _, ev := range l.submit() {
			l.note(l.s.Step(ev))
		}
	}
}

func kindName(i int) string { return fmt.Sprintf("kind%05d", i) }

// peakOf and loadOfKind return the memory and the load of tasks of a kind.
func peakOf(i int) units.Bytes { return units.Bytes(3+i%19) * units.GiB }

func loadOfKind(i int) interference.Load {
	return predict.TypicalLoads[[]predict.Class{predict.LightTask, predict.MediumTask, predict.MediumTask, predict.HeavyTask, predict.LightTask}[i%5]]
}

func (l *lab) note(decisions []model.Decision) {
	for _, d := range decisions {
		switch d := d.(type) {
		case model.Launch:
			l.running = append(l.running, d.Task)
			l.coming = append(l.coming, model.Started{At: l.now, Task: d.Task, Attempt: d.Attempt})
		case model.Stop:
			l.coming = append(l.coming, model.Exited{At: l.now, Task: d.Task, Attempt: d.Attempt, Class: model.ExitStopped})
		}
	}
}

// next returns the next event. Once in three seconds a task is submitted and one ends;
// most events are samples.
func (l *lab) next() model.Event {
	if len(l.coming) == 0 {
		l.now += units.Instant(100 * time.Millisecond)
		if at, ok := l.s.NextTimer(); ok && at <= l.now {
			return model.TimerFired{At: l.now}
		}
		switch n := l.rng.IntN(30); {
		case n == 0:
			l.coming = l.submit()
		case n == 1:
			l.coming = l.exit()
		case n < 5:
			l.coming = []model.Event{l.paced()}
		default:
			l.coming = []model.Event{l.sample()}
		}
	}
	ev := l.coming[0]
	l.coming = l.coming[1:]
	return ev
}

func (l *lab) submit() []model.Event {
	l.last++
	i := l.rng.IntN(2 * l.kinds)
	r := model.Request{ID: l.last, GPUs: 1, Kind: kindName(i), Family: fmt.Sprint(i % 50), User: fmt.Sprint("user", i%40), Image: fmt.Sprint("image", i%300)}
	if l.rng.IntN(20) == 0 {
		r.GPUs = 2
	}
	return []model.Event{model.TaskSubmitted{At: l.now, Request: r}, model.Estimated{At: l.now, Task: r.ID, Estimate: model.Estimate{WholeGPU: true}}}
}

func (l *lab) exit() []model.Event {
	for len(l.running) > 0 {
		i := l.rng.IntN(len(l.running))
		t := l.s.TaskByID(l.running[i])
		l.running = slices.Delete(l.running, i, i+1)
		if t != nil && t.Phase == model.Running {
			return []model.Event{model.Exited{At: l.now, Task: t.ID, Attempt: t.Last().N, Class: model.ExitOK}}
		}
	}
	return []model.Event{model.TimerFired{At: l.now}}
}

// indexOf returns the number in the name of a task's kind.
func indexOf(t *model.Task) (i int) {
	if _, err := fmt.Sscanf(t.Kind, "kind%d", &i); err != nil {
		panic(err)
	}
	return i
}

// speeds returns the loads and the true speeds of the tasks on a GPU.
func (l *lab) speeds(g *model.GPU) ([]interference.Load, []float64) {
	var loads []interference.Load
	for i := range g.Residents {
		loads = append(loads, loadOfKind(indexOf(l.s.TaskByID(g.Residents[i].Task))))
	}
	return loads, interference.Speeds(loads)
}

func (l *lab) anyGPU() *model.GPU { return l.s.GPUList()[l.rng.IntN(len(l.s.GPUList()))] }

func (l *lab) sample() model.Event {
	g := l.anyGPU()
	s := model.GPUSample{ID: g.ID}
	loads, speeds := l.speeds(g)
	for i, load := range loads {
		t := l.s.TaskByID(g.Residents[i].Task)
		use := model.TaskUse{Task: t.ID, Used: peakOf(indexOf(t))}
		s.Tasks, s.Used = append(s.Tasks, use), s.Used+use.Used
		s.SMACT, s.SMOCC, s.DRAMA = s.SMACT+load.SMACT*speeds[i], s.SMOCC+load.SMOCC*speeds[i], s.DRAMA+load.DRAMA*speeds[i]
	}
	return model.Sampled{At: l.now, GPUs: []model.GPUSample{s}}
}

func (l *lab) paced() model.Event {
	g := l.anyGPU()
	ev := model.ThroughputReported{At: l.now}
	_, speeds := l.speeds(g)
	for i := range g.Residents {
		t := l.s.TaskByID(g.Residents[i].Task)
		ev.Tasks = append(ev.Tasks, model.Throughput{
			Task: t.ID, Attempt: t.Last().N, Rate: 10 * speeds[i] * (0.95 + 0.1*l.rng.Float64()), Error: 0.03, Steps: true,
			Since: max(g.ChangedAt, l.now.Add(-time.Minute)), Share: 0.3,
		})
	}
	return ev
}
