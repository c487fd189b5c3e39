package sim

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"carma/mapper/units"

	"carma/mapper"
	"carma/mapper/words"
)

// engine is a replay under way.
type engine struct {
	cfg     Config
	state   *mapper.State
	now     units.Instant
	start   units.Instant // first arrival
	agenda  agenda
	devices []*device // by machine, then index
	byID    map[mapper.GPUID]*device
	runs    map[mapper.TaskID]*run // look-up only

	tasks    []*Task // in order of arrival: the number of the first is 1
	arrived  int
	saved    []float64 // by task: seconds of training that its last checkpoint holds
	results  []TaskResult
	finished int
	steps    int

	sample, wake, submit *entry
	sampled              units.Instant // when the monitor looked last
	record               *recorder     // nil: no timeline

	loads   []Load // scratch
	samples []mapper.GPUSample
}

// run is one attempt of a task.
type run struct {
	entry
	id      mapper.TaskID
	attempt int
	task    *Task
	uses    []*use

	plan     []Allocation // what is still to come
	training bool
	trained  float64       // seconds of training done
	rate     float64       // per second
	at       units.Instant // when trained was right
	goal     float64       // the point that entry is about
	stopped  string        // why; empty: it is not
}

// exitTerminated is the code of a program that SIGTERM has ended.
const exitTerminated = 143

func newEngine(cfg Config, tasks []*Task) *engine {
	e := &engine{
		cfg: cfg, state: mapper.New(cfg.Options), tasks: tasks, results: make([]TaskResult, len(tasks)), saved: make([]float64, len(tasks)),
		byID: map[mapper.GPUID]*device{}, runs: map[mapper.TaskID]*run{}, start: origin,
		sample: &entry{rank: rankSample}, wake: &entry{rank: rankWake}, submit: &entry{rank: rankSubmit},
	}
	if len(tasks) > 0 {
		e.start = origin.Add(tasks[0].At)
		e.agenda.set(e.submit, e.start)
	}
	e.now = e.start
	infos := make([]mapper.GPUInfo, len(cfg.GPUs))
	for i, g := range cfg.GPUs {
		infos[i] = mapper.GPUInfo{ID: g.ID, Node: g.Node, Index: g.Index, Model: g.Model, Capacity: g.Memory}
		d := newDevice(g, e.start)
		d.score = cfg.Score
		d.sharing, d.model = cfg.Sharing, Fitted
		if cfg.Model != nil {
			d.model = *cfg.Model
		}
		e.devices = append(e.devices, d)
		e.byID[g.ID] = d
	}
	slices.SortFunc(e.devices, func(a, b *device) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Index, b.Index), cmp.Compare(a.ID, b.ID))
	})
	if cfg.Timeline {
		e.record = newRecorder(e.start, e.devices)
	}
	e.step(mapper.GPUsFound{At: e.now, GPUs: infos})
	return e
}

// loop runs until the last task has finished.
func (e *engine) loop() error {
	for e.finished < len(e.tasks) {
		if len(e.agenda) == 0 {
			return e.stuck()
		}
		due := e.agenda.next()
		e.now = due.at
		switch due.rank {
		case rankProgress:
			e.progress(due.run)
		case rankStart:
			e.begin(due.run)
		case rankSample:
			e.look()
		case rankWake:
			e.step(mapper.Woke{At: e.now})
		case rankSubmit:
			e.arrive()
		}
	}
	for _, d := range e.devices {
		d.advance(e.now)
	}
	return nil
}

// stuck is the error when tasks are left and nothing will happen any more.
func (e *engine) stuck() error {
	for _, t := range e.state.Tasks() {
		why, _ := e.state.Why(t.ID)
		return fmt.Errorf("%d tasks never finish; task %d (%s) is %s: %s",
			len(e.tasks)-e.finished, t.ID, e.tasks[t.ID-1].Name, t.Phase, words.Why(why))
	}
	return fmt.Errorf("%d tasks never finish", len(e.tasks)-e.finished)
}

// step gives the mapper an event and carries out what it decides.
func (e *engine) step(ev mapper.Event) {
	e.steps++
	done := e.state.Step(ev)
	e.record.stepped(e.now, e.state)
	if e.cfg.Observe != nil {
		e.cfg.Observe(e.state, ev, done)
	}
	for _, d := range done {
		switch d := d.(type) {
		case mapper.Launch:
			e.launch(d)
		case mapper.Stop:
			e.stop(e.runs[d.Task], words.Reason(d.Reason))
		case mapper.Finish:
			e.finish(d.Task)
		case mapper.WakeAt:
			e.agenda.set(e.wake, max(d.At, e.now))
		}
	}
}

// arrive submits the next task, estimated at once.
func (e *engine) arrive() {
	t := e.tasks[e.arrived]
	e.arrived++
	id := mapper.TaskID(e.arrived)
	if e.arrived < len(e.tasks) {
		e.agenda.set(e.submit, origin.Add(e.tasks[e.arrived].At))
	}
	e.step(mapper.TaskSubmitted{At: e.now, Request: mapper.Request{
		ID: id, User: t.User, Kind: t.Kind, Family: t.Family, GPUs: t.GPUs, Priority: t.Priority, Exclusive: t.Exclusive, TimeLimit: t.TimeLimit, Slot: t.Slot,
	}})
	e.step(mapper.Estimated{At: e.now, Task: id, Estimate: t.Estimate, Expected: t.Expected})
}

func (e *engine) launch(l mapper.Launch) {
	t := e.tasks[l.Task-1]
	r := &run{id: l.Task, attempt: l.Attempt, task: t}
	r.entry = entry{rank: rankStart, seq: int64(l.Task), run: r}
	for i, grant := range l.Grants {
		r.uses = append(r.uses, &use{run: r, device: e.byID[grant.GPU], load: t.Loads[i]})
	}
	e.runs[r.id] = r
	e.agenda.set(&r.entry, e.now.Add(e.cfg.StartUp))
}

// begin is the container's first moment.
func (e *engine) begin(r *run) {
	r.rank, r.at, r.rate = rankProgress, e.now, r.slowest(func(u *use) float64 { return u.device.Speed })
	r.plan = Allocations(r.task.SoloTime.Seconds(), r.task.Context, r.task.Memory)
	for _, u := range r.uses {
		u.device.uses = append(u.device.uses, u)
		u.rate = u.device.Speed
	}
	e.step(mapper.Started{At: e.now, Task: r.id, Attempt: r.attempt})
	e.progress(r)
}

// stop ends a run within the instant, whether or not its container runs.
func (e *engine) stop(r *run, reason string) {
	e.agenda.drop(&r.entry)
	r.rank, r.stopped = rankProgress, reason
	e.agenda.set(&r.entry, e.now)
}

func (r *run) slowest(of func(*use) float64) float64 {
	rate := math.Inf(1)
	for _, u := range r.uses {
		rate = min(rate, of(u))
	}
	return rate
}

// progress does what is due at the point that a run has reached.
func (e *engine) progress(r *run) {
	if r.stopped != "" {
		e.end(r, mapper.Exited{Class: mapper.ExitStopped, Code: exitTerminated, Message: r.stopped})
		return
	}
	r.trained, r.at = r.goal, e.now // exact, whatever the sums of products say
	for len(r.plan) > 0 && r.plan[0].At <= r.trained {
		next := r.plan[0]
		r.plan = r.plan[1:]
		u := r.uses[next.GPU]
		if !u.alloc(e.now, next.Bytes) {
			e.outOfMemory(r, u, next.Bytes)
			return
		}
		e.heat(u.device)
	}
	whole := r.task.SoloTime.Seconds()
	end := whole - e.saved[r.id-1]
	if r.trained >= end {
		e.end(r, mapper.Exited{Class: mapper.ExitOK})
		return
	}
	if !r.training && r.trained >= TrainsFrom(whole) {
		r.training = true
		e.settle(r)
	}
	r.goal = end
	if !r.training {
		r.goal = min(r.goal, TrainsFrom(whole))
	}
	if len(r.plan) > 0 {
		r.goal = min(r.goal, r.plan[0].At)
	}
	e.schedule(r)
}

// schedule sets when a run will be at its goal.
func (e *engine) schedule(r *run) {
	left := math.Ceil((r.goal - r.trained) / r.rate * float64(time.Second))
	e.agenda.set(&r.entry, e.now.Add(time.Duration(min(max(0, left), 1e18))))
}

// settle follows a change of who is busy on the GPUs of a run.
func (e *engine) settle(r *run) {
	for _, u := range r.uses {
		e.heat(u.device)
		e.loads = u.device.settle(e.now, e.loads)
		for _, other := range u.device.uses {
			if o := other.run; o != r {
				e.repace(o)
			}
		}
	}
	e.repace(r)
}

// repace gives a run the rate of its slowest GPU.
func (e *engine) repace(r *run) {
	rate := r.slowest(func(u *use) float64 { return u.rate })
	if rate == r.rate || len(r.uses) == 0 {
		return
	}
	r.trained = min(r.goal, r.trained+r.rate*seconds(e.now-r.at))
	r.at, r.rate = e.now, rate
	if r.pos > 0 && r.stopped == "" {
		e.schedule(r)
	}
}

func (e *engine) outOfMemory(r *run, u *use, asked units.Bytes) {
	free := u.device.Memory - u.device.held
	e.end(r, mapper.Exited{
		Class: mapper.ExitGPUOOM, Code: 1, Demand: u.held + asked,
		Message: fmt.Sprintf("%s asked for on GPU %d, %s free of %s", asked, u.device.Index, free, u.device.Memory),
	})
}

// end takes a run off its GPUs and reports it.
func (e *engine) end(r *run, ev mapper.Exited) {
	e.agenda.drop(&r.entry)
	e.save(r)
	delete(e.runs, r.id)
	var peak units.Bytes
	for _, u := range r.uses {
		peak = max(peak, u.peak)
		u.leave(e.now)
	}
	r.training = false
	uses := r.uses
	r.uses = nil
	for _, u := range uses {
		e.heat(u.device)
		e.loads = u.device.settle(e.now, e.loads)
		for _, other := range u.device.uses {
			e.repace(other.run)
		}
	}
	ev.At, ev.Task, ev.Attempt, ev.Peak = e.now, r.id, r.attempt, peak
	e.step(ev)
}

func (e *engine) finish(t mapper.Task) {
	out := TaskResult{ID: t.ID, Task: e.tasks[t.ID-1], Phase: t.Phase, Reason: words.Reason(t.Reason)}
	out.Record = Record{
		Submitted: t.Submitted, Ended: t.Ended, Succeeded: t.Phase == mapper.Succeeded, Solo: out.Task.SoloTime,
	}
	for _, a := range t.Attempts {
		speed := math.Inf(1)
		for _, g := range a.Grants {
			speed = min(speed, e.byID[g.GPU].Speed)
		}
		out.Record.Attempts = append(out.Record.Attempts, AttemptRecord{
			Launched: a.Launched, Started: a.Started, Ended: a.Ended, Speed: speed,
			OK: a.Class == mapper.ExitOK, OOM: a.Class == mapper.ExitGPUOOM,
		})
	}
	if a := t.Last(); a != nil {
		for _, g := range a.Grants {
			out.GPUs = append(out.GPUs, e.byID[g.GPU].Index)
		}
	}
	e.record.finished(&t, out.Task.Name)
	e.results[t.ID-1] = out
	e.finished++
}

// heat has the monitor look at a device until it shows nothing new.
func (e *engine) heat(d *device) {
	d.warm = true
	if e.sample.pos > 0 {
		return
	}
	tick := origin + (e.now-origin+sampleEvery-1)/sampleEvery*sampleEvery
	e.agenda.set(e.sample, max(tick, e.sampled+sampleEvery))
}

// look is the monitor's tick. GPUs on which nothing has changed for as long as
// its window read the same as before, and are left out.
func (e *engine) look() {
	e.sampled = e.now
	differ, warm := false, false
	e.samples = e.samples[:0]
	for _, d := range e.devices {
		if !d.warm {
			continue
		}
		differ = d.look(e.now) || differ
		warm = warm || d.warm
		e.samples = append(e.samples, d.sample())
	}
	if warm {
		e.agenda.set(e.sample, e.now+sampleEvery)
	}
	if differ {
		e.step(mapper.Sampled{At: e.now, GPUs: e.samples})
	}
}
