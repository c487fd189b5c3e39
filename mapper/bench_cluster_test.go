package mapper

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/interference"
	"carma/mapper/model"
	"carma/mapper/predict"
)

// BenchmarkLaunches measures how many tasks policy carma launches in a second of processor
// time: while it fills the GPUs of a cluster, and when all GPUs are full, so that only the end
// of a task lets others start. Memory, activity and run time of the tasks are known; one in ten
// needs two GPUs, if machines have more than one. An iteration is the end of a task, the
// launches after it, and as many new tasks as launches, each with the following scheduling
// cycles.
//
// 200 waiting tasks do not prove that the cluster is full: the first in the queue may need more
// than is free, and when it has started, a thousand tasks behind it may start too. So the
// benchmark ends tasks until a hundred ends cause at most 150 launches.
func BenchmarkLaunches(b *testing.B) {
	for _, c := range []struct{ gpus, of int }{{1000, 8}, {10_000, 8}, {10_000, 1}} {
		b.Run(fmt.Sprintf("gpus=%d/of-a-machine=%d", c.gpus, c.of), func(b *testing.B) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			f := newFull(b, c.gpus, c.of)
			for f.s.QueueLen() < 200 {
				f.submit()
			}
			filling := f.rate()
			for f.ends(100) > 150 {
			}
			f.launched, f.took = 0, 0
			for b.Loop() {
				f.ends(1)
			}
			b.ReportMetric(float64(f.launched)/float64(b.N), "launches/end")
			b.ReportMetric(float64(len(f.running))/float64(c.gpus), "tasks/GPU")
			b.ReportMetric(filling, "filling-launches/s")
			b.ReportMetric(f.rate(), "full-launches/s")
			if idle := f.idle(); idle > 0 {
				b.Fatalf("%d of %d GPUs are idle: not the load this is about", idle, c.gpus)
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
	of       int // number of GPUs per machine
	now      units.Instant
	last     model.TaskID
	running  []model.TaskID // the oldest first
	launched int
	took     time.Duration // processor time of the steps
}

func newFull(b *testing.B, gpus, of int) *full {
	f := &full{b: b, s: New(DefaultsOf("carma")), of: of, now: units.Instant(time.Hour)}
	var all []model.GPUInfo
	for i := range gpus {
		all = append(all, model.GPUInfo{ID: model.GPUID(fmt.Sprintf("GPU-%06d", i)), Node: fmt.Sprintf("node%04d", i/of), Index: i % of, Capacity: 80 * units.GiB})
	}
	f.step(model.GPUsFound{At: f.now, GPUs: all})
	return f
}

func (f *full) rate() float64 { return float64(f.launched) / max(f.took.Seconds(), 1e-9) }

// step applies an event and answers its launches.
func (f *full) step(ev model.Event) {
	from := cpuTime(f.b)
	decisions := f.s.Step(ev)
	f.took += cpuTime(f.b) - from
	for _, d := range decisions {
		if l, ok := d.(model.Launch); ok {
			f.launched++
			f.running = append(f.running, l.Task)
			f.step(model.Started{At: f.now, Task: l.Task, Attempt: l.Attempt})
		}
	}
}

func (f *full) submit() {
	f.last++
	i := int(f.last)
	f.now = f.now.Add(time.Second)
	r := model.Request{ID: f.last, GPUs: 1, Kind: fmt.Sprint("kind", i%40)}
	if i%10 == 0 && f.of > 1 {
		r.GPUs = 2
	}
	loads := []interference.Load{predict.TypicalLoads[[]predict.Class{predict.LightTask, predict.MediumTask, predict.MediumTask, predict.HeavyTask}[i%4]]}
	f.step(model.TaskSubmitted{At: f.now, Request: r})
	f.step(model.Estimated{At: f.now, Task: r.ID, Estimate: model.Estimate{Memory: units.Bytes(6+i%30) * units.GiB}, Expected: model.Expected{RunTime: time.Duration(4+i%9) * time.Hour, Loads: loads}})
}

// ends ends n tasks, and fills up the queue after each. It returns the number of
// launches.
func (f *full) ends(n int) int {
	before := f.launched
	for range n {
		f.end()
		for f.s.QueueLen() < 200 {
			f.submit()
		}
	}
	return f.launched - before
}

// end ends the task that was launched first.
func (f *full) end() {
	t := f.s.TaskByID(f.running[0])
	f.running = f.running[1:]
	f.now = f.now.Add(time.Second)
	f.step(model.Exited{At: f.now, Task: t.ID, Attempt: t.Last().N, Class: model.ExitOK})
}

func (f *full) idle() (n int) {
	for _, g := range f.s.GPUList() {
		if g.Idle() {
			n++
		}
	}
	return n
}
