package mapper

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
)

// BenchmarkStep applies the events of a full and busy cluster: 256 GPUs in 32 machines, some
// 1000 running tasks, and 10,000 or 100,000 waiting tasks. A variant adds as many tasks that
// are held by the limit of their group or by a dependency. It reports the mean (ns/op), the
// median and the 99th percentile of single steps, and the median for each kind of event.
func BenchmarkStep(b *testing.B) {
	for _, load := range []struct{ queued, held int }{{10_000, 0}, {100_000, 0}, {100_000, 100_000}} {
		queued := load.queued
		b.Run(fmt.Sprintf("queued=%d,held=%d", load.queued, load.held), func(b *testing.B) {
			c := newCluster(b, queued)
			c.hold(load.held)
			took := map[string][]time.Duration{}
			for b.Loop() {
				b.StopTimer()
				ev := c.next()
				b.StartTimer()
				from := time.Now()
				decisions := c.s.Step(ev)
				d := time.Since(from)
				c.note(decisions)
				took["all"] = append(took["all"], d)
				took[ev.Kind()] = append(took[ev.Kind()], d)
			}
			for kind, all := range took {
				slices.Sort(all)
				b.ReportMetric(float64(all[len(all)/2].Nanoseconds()), kind+"-median-ns")
				if kind == "all" {
					b.ReportMetric(float64(all[len(all)*99/100].Nanoseconds()), "p99-ns")
				}
			}
			if err := c.s.sound(); err != nil {
				b.Fatal(err)
			}
			if n, q := len(c.running), c.s.QueueLen(); n < 750 || n > 1250 || q < queued*9/10 || q > queued*11/10 {
				b.Fatalf("%d tasks run and %d wait: not the load this is about", n, q)
			}
		})
	}
}

// cluster is a state under load, and what is needed to continue with it.
type cluster struct {
	s       *State
	rng     *rand.Rand
	now     units.Instant
	last    model.TaskID
	running map[model.TaskID]int // the attempt
	coming  []model.Event        // the next events
	sampled int
}

func newCluster(b *testing.B, queued int) *cluster {
	opt := DefaultsOf("magm")
	opt.IdleFirst = false
	c := &cluster{s: New(opt), rng: rand.New(rand.NewPCG(1, 2)), now: 1, running: map[model.TaskID]int{}}
	var gpus []model.GPUInfo
	for i := range 256 {
		gpus = append(gpus, model.GPUInfo{ID: model.GPUID(fmt.Sprintf("GPU-%08x-7d3e-4f1a-9c55-0123456789ab", i*2654435761)), Node: fmt.Sprintf("node%02d", i/8), Index: i % 8, Capacity: 80 * units.GiB})
	}
	c.s.Step(model.GPUsFound{At: c.now, GPUs: gpus})
	for c.s.QueueLen() < queued {
		c.now += units.Instant(time.Second)
		c.coming = append(c.coming, c.submit()...)
		for len(c.coming) > 0 {
			c.note(c.s.Step(c.next()))
		}
	}
	return c
}

// hold adds tasks that are not queued: half of them in an array of which eight may run at a
// time, half of them in a chain of dependencies.
func (c *cluster) hold(n int) {
	for i := range n {
		c.last++
		r := model.Request{ID: c.last, GPUs: 1}
		if i < n/2 {
			r.Group, r.Parallel = "array", 8
		} else {
			r.After = []model.Dependency{{Task: c.last - 1, Condition: model.AfterOK}}
		}
		c.note(c.s.Step(model.TaskSubmitted{At: c.now, Request: r}))
		c.note(c.s.Step(model.Estimated{At: c.now, Task: r.ID, Estimate: model.Estimate{Memory: 16 * units.GiB}}))
	}
}

func (c *cluster) note(decisions []model.Decision) {
	for _, d := range decisions {
		switch d := d.(type) {
		case model.Launch:
			c.running[d.Task] = d.Attempt
			c.coming = append(c.coming, model.Started{At: c.now, Task: d.Task, Attempt: d.Attempt})
		case model.Finish:
			delete(c.running, d.Task.ID)
		}
	}
}

// next returns the next event. About once a second a task is submitted, and another one ends
// and makes room for others. Most events are samples.
func (c *cluster) next() model.Event {
	c.now += units.Instant(50 * time.Millisecond)
	if len(c.coming) == 0 {
		switch c.rng.IntN(20) {
		case 0:
			c.coming = c.submit()
		case 1:
			c.coming = c.exit()
		case 2:
			c.coming = []model.Event{model.TimerFired{At: c.now}}
		default:
			c.coming = []model.Event{c.sample()}
		}
	}
	ev := c.coming[0]
	c.coming = c.coming[1:]
	return ev
}

func (c *cluster) submit() []model.Event {
	c.last++
	r := model.Request{ID: c.last, GPUs: 1, Priority: model.Priority(c.rng.IntN(3) - 1)}
	e := model.Estimate{Memory: units.Bytes(14+c.rng.IntN(8)) * units.GiB}
	switch c.rng.IntN(40) {
	case 0:
		r.GPUs = 8
	case 1, 2:
		r.GPUs = 2
	case 3:
		e = model.Estimate{WholeGPU: true}
	}
	return []model.Event{model.TaskSubmitted{At: c.now, Request: r}, model.Estimated{At: c.now, Task: r.ID, Estimate: e}}
}

// exit ends some running task, which lets others start.
func (c *cluster) exit() []model.Event {
	g := c.s.GPUList()[c.rng.IntN(len(c.s.GPUList()))]
	if len(g.Residents) == 0 {
		return []model.Event{model.TimerFired{At: c.now}}
	}
	id := g.Residents[c.rng.IntN(len(g.Residents))].Task
	return []model.Event{model.Exited{At: c.now, Task: id, Attempt: c.running[id], Class: model.ExitOK}}
}

func (c *cluster) sample() model.Event {
	g := c.s.GPUList()[c.sampled%len(c.s.GPUList())]
	c.sampled++
	s := model.GPUSample{ID: g.ID, SMACT: 0.3 + c.rng.Float64()/2, SMOCC: 0.3, DRAMA: 0.2}
	for _, r := range g.Residents {
		used := r.Grant.Scale(0.7 + c.rng.Float64()*0.2)
		s.Used += used
		s.Tasks = append(s.Tasks, model.TaskUse{Task: r.Task, Used: used})
	}
	return model.Sampled{At: c.now, GPUs: []model.GPUSample{s}}
}
