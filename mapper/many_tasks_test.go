package mapper

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/interference"
	"carma/mapper/model"
	"carma/mapper/predict"
)

// throng is a small cluster with tasks of a few kinds and sizes, and all events that may change
// which tasks a GPU accepts. The number of waiting tasks rises and falls. With many, little
// memory is free. With few, a new task may be the first that a GPU accepts.
type throng struct {
	s, plain *State // with a cache, and without
	opt      model.Options
	rng      *rand.Rand
	now      units.Instant
	gpus     []model.GPUInfo
	last     model.TaskID
	coming   []model.Event
}

func newThrong(seed uint64) *throng {
	c := &throng{opt: DefaultsOf("carma"), rng: rand.New(rand.NewPCG(seed, 0)), now: units.Instant(time.Hour)}
	c.opt.Ageing = 5 * time.Minute
	c.opt.FillHeld, c.opt.MakeWay = seed%6 == 4, seed%6 == 5
	if seed%2 == 0 {
		c.opt.LearnMemory = 2 * time.Minute
	}
	for i := range 8 {
		c.gpus = append(c.gpus, model.GPUInfo{ID: model.GPUID(fmt.Sprintf("GPU-%02d", i)), Node: fmt.Sprint("node", i/4), Index: i % 4, Model: "H100", Capacity: 80 * units.GiB, Suspend: model.SuspendMove})
	}
	c.s = New(c.opt)
	c.s.Step(model.GPUsFound{At: c.now, GPUs: c.gpus})
	c.plain = c.s.Clone()
	return c
}

// next returns the next expected event, a due one, or a new one.
func (c *throng) next() model.Event {
	if len(c.coming) > 0 {
		ev := c.coming[0]
		c.coming = c.coming[1:]
		return ev
	}
	c.now = c.now.Add(time.Duration(c.rng.IntN(40)) * time.Second)
	if c.one(30) {
		c.now = c.now.Add(10 * time.Minute)
	}
	if at, ok := c.s.NextTimer(); ok && at <= c.now {
		return model.TimerFired{At: c.now}
	}
	wait := []int{1, 30, 4, 12}[c.last/40%4]
	switch t := c.task(model.Running); {
	case c.one(4):
		return c.disturbance()
	case t != nil && (c.s.QueueLen() > wait || c.one(8)):
		return model.Exited{At: c.now, Task: t.ID, Attempt: t.Last().N, Class: []model.Class{model.ExitOK, model.ExitOK, model.ExitOK, model.ExitGPUOOM, model.ExitInfrastructure}[c.rng.IntN(5)]}
	}
	return c.submit()
}

func (c *throng) one(in int) bool { return c.rng.IntN(in) == 0 }

// task returns a task in a phase, or nil.
func (c *throng) task(in model.Phase) *model.Task {
	all := slices.DeleteFunc(c.s.Tasks(), func(t model.Task) bool { return t.Phase != in })
	if len(all) == 0 {
		return nil
	}
	return &all[c.rng.IntN(len(all))]
}

func (c *throng) gpu() model.GPUID { return c.gpus[c.rng.IntN(len(c.gpus))].ID }

func (c *throng) submit() model.Event {
	c.last++
	r := model.Request{ID: c.last, GPUs: 1, User: []string{"ada", "bob"}[c.rng.IntN(2)], Namespace: []string{"", "", "lab"}[c.rng.IntN(3)], Kind: fmt.Sprint("kind", c.rng.IntN(3)), Priority: []model.Priority{model.Low, model.Normal, model.Normal, model.Normal, model.High}[c.rng.IntN(5)]}
	if r.Exclusive = c.one(6); c.one(6) {
		r.GPUs = 2
	}
	e := model.Estimate{Memory: units.Bytes(10+10*c.rng.IntN(5)) * units.GiB}
	switch c.rng.IntN(6) {
	case 0:
		e = model.Estimate{WholeGPU: true} // its memory may be learned
	case 1:
		e.Memory, e.Share = 4*units.GiB, 300_000
	}
	x := model.Expected{RunTime: time.Duration(1+c.rng.IntN(2)) * time.Hour}
	if !c.one(4) {
		x.Loads = []interference.Load{predict.TypicalLoads[[]predict.Class{predict.LightTask, predict.MediumTask}[c.rng.IntN(2)]]}
	}
	c.coming = append(c.coming, model.Estimated{At: c.now, Task: r.ID, Estimate: e, Expected: x})
	return model.TaskSubmitted{At: c.now, Request: r}
}

// disturbance returns any event but a submission or an exit.
func (c *throng) disturbance() model.Event {
	id := c.gpu()
	until := &model.Cordon{Until: c.now.Add(time.Duration(c.rng.IntN(20)) * time.Minute)}
	queued, running := c.task(model.Queued), c.task(model.Running)
	switch n := c.rng.IntN(20); {
	case n < 5:
		return model.Sampled{At: c.now, GPUs: []model.GPUSample{c.sample(id)}}
	case n < 7 && running != nil:
		return model.ThroughputReported{At: c.now, Tasks: []model.Throughput{{Task: running.ID, Attempt: running.Last().N, Rate: 0.5 + c.rng.Float64(), Since: c.now.Add(-time.Minute)}}}
	case n == 7:
		return model.GPUsCordoned{At: c.now, GPUs: []model.GPUID{id}, Closure: []*model.Cordon{nil, until, {}}[c.rng.IntN(3)]}
	case n == 8:
		return model.GPUsReset{At: c.now, GPUs: []model.GPUID{id}}
	case n == 9:
		c.coming = append(c.coming, model.Sampled{At: c.now}, model.Unreserved{At: c.now, ID: c.s.LastReservation() + c.rng.IntN(2)})
		return model.Reserved{At: c.now, Reservation: model.Reservation{GPUs: []model.GPUID{id}, User: "bob", Until: until.Until}}
	case n == 10 && queued != nil:
		return model.Pinned{At: c.now, Task: queued.ID, GPUs: []model.GPUID{id, c.gpu()}}
	case n == 11 && queued != nil:
		return model.TaskUpdated{At: c.now, Task: queued.ID, Change: model.TaskUpdate{Priority: new(model.High)}}
	case n == 12 && running != nil:
		return model.SuspendAsked{At: c.now, Task: running.ID}
	case n == 13:
		if t := c.task(model.Suspended); t != nil {
			return model.ResumeAsked{At: c.now, Task: t.ID}
		}
	case n == 14:
		return model.LaunchingPaused{At: c.now, Closure: []*model.Cordon{nil, until}[c.rng.IntN(2)]}
	case n == 15:
		some := slices.Clone(c.gpus)
		if c.one(2) {
			i := c.rng.IntN(len(some))
			some = slices.Delete(some, i, i+1)
		}
		return model.GPUsFound{At: c.now, GPUs: some}
	case n == 16:
		c.opt.QuotaGPUs, c.opt.MaxTasks = 4*c.rng.IntN(3), 3*c.rng.IntN(2)
		return model.Configured{At: c.now, Options: c.opt, Format: model.DecisionFormat}
	case n == 17 && queued != nil:
		return model.Cancel{At: c.now, Task: queued.ID}
	case n == 18:
		return model.EngineChanged{At: c.now, Up: true}
	}
	return model.TimerFired{At: c.now}
}

// sample returns a reading of a GPU whose tasks use about their grants.
func (c *throng) sample(id model.GPUID) model.GPUSample {
	in := model.GPUSample{ID: id, Coarse: c.one(8), OtherProcesses: []units.Bytes{0, 0, 20 * units.GiB}[c.rng.IntN(3)], SMACT: c.rng.Float64()}
	in.SMOCC, in.DRAMA, in.Used = in.SMACT/2, in.SMACT/3, in.OtherProcesses
	if c.one(12) {
		in.Fault, in.UntilReset = "ECC", c.one(2)
	}
	if g := c.s.GPU(id); g != nil {
		for _, r := range g.Residents {
			u := model.TaskUse{Task: r.Task, Used: r.Grant.Scale([]float64{0.3, 0.3, 0.9, 1.1}[c.rng.IntN(4)])}
			in.Tasks, in.Used = append(in.Tasks, u), in.Used+u.Used
		}
	}
	return in
}

// note answers the decisions. Some containers do not start.
func (c *throng) note(decisions []model.Decision) {
	for _, d := range decisions {
		switch d := d.(type) {
		case model.Launch:
			scope := []model.BreakerScope{model.ScopeGPU, model.ScopeGPU, model.ScopeNamespace}[c.rng.IntN(3)]
			if ev := model.Event(model.Started{At: c.now, Task: d.Task, Attempt: d.Attempt}); !c.one(8) {
				c.coming = append(c.coming, ev)
			} else {
				c.coming = append(c.coming, model.Exited{At: c.now, Task: d.Task, Attempt: d.Attempt, Class: model.ExitInfrastructure, Fault: &model.Fault{Scope: scope, Cause: "broken"}})
			}
		case model.Stop:
			c.coming = append(c.coming, model.Exited{At: c.now, Task: d.Task, Attempt: d.Attempt, Class: model.ExitStopped})
		case model.Suspend:
			c.coming = append(c.coming, model.SuspendDone{At: c.now, Task: d.Task, Attempt: d.Attempt})
		case model.Resume:
			c.coming = append(c.coming, model.Resumed{At: c.now, Task: d.Task, Attempt: d.Attempt})
		}
	}
}

// reload replaces the state with a cache by one read from its snapshot.
func (c *throng) reload(t *testing.T) {
	b, err := json.Marshal(c.s)
	if err != nil {
		t.Fatal(err)
	}
	c.s = &State{}
	if err := json.Unmarshal(b, c.s); err != nil {
		t.Fatal(err)
	}
}
