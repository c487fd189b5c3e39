package mapper

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"carma/mapper/interference"
	"carma/mapper/units"
)

// BenchmarkLaunches is how many tasks policy carma launches in a second of processor time:
// while it fills the GPUs of a cluster, and when all of them are full, so that each end of a
// task lets others in. Memory, activity and run time of the tasks are known; one in ten asks
// for two GPUs. An iteration is the end of a task.
func BenchmarkLaunches(b *testing.B) {
	for _, gpus := range []int{1000, 10_000} {
		b.Run(fmt.Sprintf("gpus=%d", gpus), func(b *testing.B) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			f := newFull(b, gpus)
			for f.s.QueueLen() < 200 {
				f.submit()
			}
			filling := f.rate()
			f.launched, f.took = 0, 0
			for b.Loop() {
				f.end()
				for f.s.QueueLen() < 200 {
					f.submit()
				}
			}
			b.ReportMetric(filling, "filling-launches/s")
			b.ReportMetric(f.rate(), "full-launches/s")
			if idle := f.idle(); idle > gpus/100 {
				b.Fatalf("%d of %d GPUs are idle: not the load this is about", idle, gpus)
			}
			if err := f.s.Audit(); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// full is a cluster with more tasks than room.
type full struct {
	b        *testing.B
	s        *State
	now      units.Instant
	last     TaskID
	running  []TaskID // the oldest first
	launched int
	took     time.Duration // of processor time
}

func newFull(b *testing.B, gpus int) *full {
	f := &full{b: b, s: New(DefaultsOf("carma")), now: units.Instant(time.Hour)}
	var all []GPUInfo
	for i := range gpus {
		all = append(all, GPUInfo{ID: GPUID(fmt.Sprintf("GPU-%06d", i)), Node: fmt.Sprintf("node%04d", i/8), Index: i % 8, Capacity: 80 * units.GiB})
	}
	f.step(GPUsFound{At: f.now, GPUs: all})
	return f
}

func (f *full) rate() float64 { return float64(f.launched) / max(f.took.Seconds(), 1e-9) }

// step applies an event and answers its launches.
func (f *full) step(ev Event) {
	from := cpuTime(f.b)
	decisions := f.s.Step(ev)
	f.took += cpuTime(f.b) - from
	for _, d := range decisions {
		if l, ok := d.(Launch); ok {
			f.launched++
			f.running = append(f.running, l.Task)
			f.step(Started{At: f.now, Task: l.Task, Attempt: l.Attempt})
		}
	}
}

func (f *full) submit() {
	f.last++
	i := int(f.last)
	f.now = f.now.Add(time.Second)
	r := Request{ID: f.last, GPUs: 1, Kind: fmt.Sprint("kind", i%40)}
	if i%10 == 0 {
		r.GPUs = 2
	}
	loads := []interference.Load{typicalLoads[[]class{lightTask, mediumTask, mediumTask, heavyTask}[i%4]]}
	f.step(TaskSubmitted{At: f.now, Request: r})
	f.step(Estimated{At: f.now, Task: r.ID, Estimate: Estimate{Memory: units.Bytes(6+i%30) * units.GiB}, Expected: Expected{RunTime: time.Duration(4+i%9) * time.Hour, Loads: loads}})
}

// end is the end of the task that was launched first.
func (f *full) end() {
	t := f.s.tasks[f.running[0]]
	f.running = f.running[1:]
	f.now = f.now.Add(time.Second)
	f.step(Exited{At: f.now, Task: t.ID, Attempt: t.Last().N, Class: ExitOK})
}

func (f *full) idle() (n int) {
	for _, g := range f.s.gpus {
		if g.idle() {
			n++
		}
	}
	return n
}
