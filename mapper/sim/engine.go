package sim

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"carma/internal/units"
	"carma/mapper"
	"carma/mapper/model"
	"carma/mapper/words"
)

// engine is a replay in progress.
type engine struct {
	cfg     Config
	state   *mapper.State
	now     units.Instant
	start   units.Instant // first arrival
	agenda  agenda
	devices []*device // by machine, then index
	byID    map[model.GPUID]*device
	runs    map[model.TaskID]*run // only for look-up

	tasks   []*Task // in order of arrival; the first has number 1
	arrived int
	saved   []float64 // by task: seconds of training in its last checkpoint
	energy  []float64 // by task: joules of all its attempts
	// stretches are the suspensions of each task.
	stretches [][]Stretch
	rests     []Stretch // by task: the time for which it was idle
	results   []TaskResult
	smallest  units.Bytes // memory of a card
	most      float64     // the largest share of a GPU's limited resource that its tasks ever use
	finished  int
	steps     int

	sample, wake, submit *entry
	drain                draining
	sampled              units.Instant // the last tick of the monitor
	record               *recorder     // nil without a timeline

	loads   []Load // scratch
	samples []model.GPUSample
}

// runtimeReserve is the part of a card's memory that programs do not use.
const runtimeReserve = units.GiB

// exitTerminated is the exit code of a program ended by SIGTERM.
const exitTerminated = 143

func newEngine(cfg Config, tasks []*Task) *engine {
	cfg.Options.LaunchesAtOnce = 0 // the modelled containers are created at once
	e := &engine{
		cfg: cfg, state: mapper.New(cfg.Options), tasks: tasks, results: make([]TaskResult, len(tasks)), saved: make([]float64, len(tasks)), energy: make([]float64, len(tasks)), stretches: make([][]Stretch, len(tasks)), rests: make([]Stretch, len(tasks)),
		byID: map[model.GPUID]*device{}, runs: map[model.TaskID]*run{}, start: origin,
		sample: &entry{rank: rankSample}, wake: &entry{rank: rankWake}, submit: &entry{rank: rankSubmit},
	}
	if len(tasks) > 0 {
		e.start = origin.Add(tasks[0].At)
		e.agenda.set(e.submit, e.start)
	}
	e.now, e.most = e.start, cfg.Truth.most(cfg.Sharing, tasks)
	e.smallest = slices.MinFunc(cfg.GPUs, func(a, b GPU) int { return cmp.Compare(a.Memory, b.Memory) }).Memory - runtimeReserve
	infos := make([]model.GPUInfo, len(cfg.GPUs))
	for i, g := range cfg.GPUs {
		infos[i] = model.GPUInfo{ID: g.ID, Node: g.Node, Index: g.Index, Model: g.Model, Capacity: g.Memory, Sharing: cfg.Sharing.told(), Suspend: cfg.Suspending.kind()}
		d := newDevice(g, e.start)
		d.score, d.coarse = cfg.Score, cfg.Coarse
		d.sharing, d.model, d.truth = cfg.Sharing, Fitted, cfg.Truth
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
	e.step(model.GPUsFound{At: e.now, GPUs: infos})
	if cfg.Suspending.on() {
		e.step(model.HostsFound{At: e.now, Hosts: cfg.Suspending.hosts(infos)})
	}
	e.planDrain()
	return e
}

// loop runs until the last task has finished.
func (e *engine) loop() error {
	for e.finished < len(e.tasks) {
		if len(e.agenda) == 0 {
			return e.stuck()
		}
		e.next()
	}
	for _, d := range e.devices {
		d.advance(e.now)
	}
	return nil
}

// next handles the entry with the earliest instant.
func (e *engine) next() {
	due := e.agenda.next()
	e.now = due.at
	switch due.rank {
	case rankProgress:
		e.progress(due.run)
	case rankCopy:
		e.copied(due.run)
	case rankStart:
		e.begin(due.run)
	case rankRest:
		e.wakes(due.run)
	case rankSample:
		e.look()
	case rankPace:
		e.pace(due.run)
	case rankWake:
		e.step(model.TimerFired{At: e.now})
	case rankClose:
		e.closes()
	case rankSubmit:
		e.arrive()
	}
}

// stuck returns an error if tasks are left but no entry is due.
func (e *engine) stuck() error {
	for _, t := range e.state.Tasks() {
		why, _ := e.state.Why(t.ID)
		return fmt.Errorf("%d tasks never finish; task %d (%s) is %s: %s",
			len(e.tasks)-e.finished, t.ID, e.tasks[t.ID-1].Name, t.Phase, words.Why(why))
	}
	return fmt.Errorf("%d tasks never finish", len(e.tasks)-e.finished)
}

// step passes the mapper an event and carries out its decisions.
func (e *engine) step(ev model.Event) {
	e.steps++
	done := e.state.Step(ev)
	e.record.stepped(e.now, e.state)
	e.cleared()
	if e.cfg.Observe != nil {
		e.cfg.Observe(e.state, ev, done)
	}
	for _, d := range done {
		switch d := d.(type) {
		case model.Launch:
			e.launch(d)
		case model.Stop:
			e.stop(e.runs[d.Task], words.Reason(d.Reason))
		case model.Suspend:
			e.suspend(d)
		case model.Resume:
			e.resume(d)
		case model.Finish:
			e.finish(d.Task)
		case model.SetTimer:
			e.agenda.set(e.wake, max(d.At, e.now))
		}
	}
}

// arrive submits the next task together with its estimate.
func (e *engine) arrive() {
	t := e.tasks[e.arrived]
	e.arrived++
	id := model.TaskID(e.arrived)
	if e.arrived < len(e.tasks) {
		e.agenda.set(e.submit, origin.Add(e.tasks[e.arrived].At))
	}
	request := model.Request{
		ID: id, User: t.User, Kind: t.Kind, Family: t.Family, GPUs: t.GPUs, Priority: t.Priority, Exclusive: t.Exclusive, TimeLimit: t.TimeLimit, Slot: t.Slot,
	}
	if e.cfg.Suspending.on() {
		request.HostReserve = ownHost
	}
	e.step(model.TaskSubmitted{At: e.now, Request: request})
	e.step(model.Estimated{At: e.now, Task: id, Estimate: t.Estimate, Expected: t.Expected})
}

func (e *engine) launch(l model.Launch) {
	t := e.tasks[l.Task-1]
	r := &run{id: l.Task, attempt: l.Attempt, task: t, came: e.now}
	r.entry = entry{rank: rankStart, seq: int64(l.Task), run: r}
	r.pace = entry{rank: rankPace, seq: int64(l.Task), run: r}
	for i, grant := range l.Grants {
		r.uses = append(r.uses, &use{run: r, device: e.byID[grant.GPU], load: t.Loads[i]})
	}
	e.runs[r.id] = r
	e.agenda.set(&r.entry, e.now.Add(e.cfg.StartUp))
}

// The speed in progress output is known after paceAfter, with error paceError.
const (
	paceAfter = 2 * time.Minute
	paceError = 0.1
)

func (e *engine) finish(t model.Task) {
	out := TaskResult{ID: t.ID, Task: e.tasks[t.ID-1], Phase: t.Phase, Reason: words.Reason(t.Reason), EnergyJ: e.energy[t.ID-1]}
	out.Record = Record{
		Submitted: t.Submitted, Ended: t.Ended, Succeeded: t.Phase == model.Succeeded, Solo: out.Task.SoloTime, Stretches: e.stretches[t.ID-1], Rest: e.rests[t.ID-1],
	}
	for _, a := range t.Attempts {
		speed := math.Inf(1)
		for _, g := range a.Grants {
			speed = min(speed, e.byID[g.GPU].Speed)
		}
		out.Record.Attempts = append(out.Record.Attempts, AttemptRecord{
			Launched: a.Launched, Started: a.Started, Ended: a.Ended, Speed: speed,
			OK: a.Class == model.ExitOK, OOM: a.Class == model.ExitGPUOOM,
		})
	}
	if a := t.Last(); a != nil {
		for _, g := range a.Grants {
			out.GPUs = append(out.GPUs, e.byID[g.GPU].Index)
		}
	}
	_, out.Pauses = e.cfg.Truth.Pauses(int(t.ID)-1, out.Task)
	e.results[t.ID-1] = out
	e.finished++
}

// heat makes the monitor read a device until its report stops changing.
func (e *engine) heat(d *device) {
	d.warm = true
	if e.sample.pos > 0 {
		return
	}
	tick := origin + (e.now-origin+sampleEvery-1)/sampleEvery*sampleEvery
	e.agenda.set(e.sample, max(tick, e.sampled+sampleEvery))
}

// look is the monitor's tick. It skips GPUs on which nothing has changed for the length
// of its window, because their reports stay the same.
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
		e.step(model.Sampled{At: e.now, GPUs: e.samples})
	}
}
