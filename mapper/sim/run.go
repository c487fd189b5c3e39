package sim

import (
	"fmt"
	"math"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
)

// run is one attempt of a task.
type run struct {
	entry
	id      model.TaskID
	attempt int
	task    *Task
	uses    []*use

	plan     []Allocation // the remaining allocations
	training bool
	trained  float64       // seconds of training done
	rate     float64       // per second
	at       units.Instant // the instant for which trained is computed
	goal     float64       // the point of the run at which entry is due
	pace     entry         // due when its output shows its speed
	paced    int           // number of speed reports
	stopped  string        // the reason, or empty if it was not stopped

	// came is the instant at which the run was placed on its present GPUs, ran the instant
	// at which it began to run there, or 0 before.
	came, ran units.Instant
	// halted is set while the run is suspending, suspended or resuming. away is set once it
	// has left its GPUs, on which it had off, and at most peak. itself is set if its program
	// vacates its GPUs. lacks is the use without enough memory for its resumption.
	halted, away, itself bool
	off                  []units.Bytes
	peak                 units.Bytes
	lacks                *use
	copying              entry // the end of a copy

	// resting is set while the task is idle, until rests. rested is set once the task has
	// been idle.
	resting, rested bool
	rests           entry
}

// begin starts the container of a run.
func (e *engine) begin(r *run) {
	r.rank, r.at, r.ran, r.rate = rankProgress, e.now, e.now, r.slowest(func(u *use) float64 { return u.device.Speed })
	r.plan = e.cfg.Truth.plan(int(r.id), r.task, e.smallest)
	for _, u := range r.uses {
		u.device.join(u, e.now)
	}
	e.step(model.Started{At: e.now, Task: r.id, Attempt: r.attempt})
	if e.leaves(r) {
		e.step(model.VacatesOnRequest{At: e.now, Task: r.id, Attempt: r.attempt})
	}
	e.progress(r)
}

// stop ends a run at once, whether or not its container runs.
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

// progress handles the point that a run has reached.
func (e *engine) progress(r *run) {
	if r.stopped != "" {
		e.end(r, model.Exited{Class: model.ExitStopped, Code: exitTerminated, Message: r.stopped})
		return
	}
	if r.halted { // the start's step has halted the run
		return
	}
	r.trained, r.at = r.goal, e.now // exact, without rounding errors of the sums
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
		e.end(r, model.Exited{Class: model.ExitOK})
		return
	}
	if !r.training && r.trained >= TrainsFrom(whole) {
		r.training = true
		e.settle(r)
	}
	pause := e.pausesAt(r)
	if r.training && pause > 0 && r.trained >= pause {
		e.rest(r)
		return
	}
	r.goal = end
	if pause > 0 {
		r.goal = min(end, max(pause, TrainsFrom(whole)))
	}
	if !r.training {
		r.goal = min(r.goal, TrainsFrom(whole))
	}
	if len(r.plan) > 0 {
		r.goal = min(r.goal, r.plan[0].At)
	}
	e.schedule(r)
}

// schedule sets the instant at which a run reaches its goal.
func (e *engine) schedule(r *run) {
	left := math.Ceil((r.goal - r.trained) / r.rate * float64(time.Second))
	e.agenda.set(&r.entry, e.now.Add(time.Duration(min(max(0, left), 1e18))))
}

// settle updates the GPUs of a run after a change of their busy tasks.
func (e *engine) settle(r *run) {
	for _, u := range r.uses {
		e.heat(u.device)
		e.loads = u.device.settle(e.now, e.loads)
		for _, other := range u.device.uses {
			if o := other.run; o != r {
				e.repace(o)
				e.timeAnew(o)
			}
		}
	}
	e.repace(r)
	e.timeAnew(r)
}

// timeAnew schedules the next speed report of a run, once its speed has been constant for
// a while.
func (e *engine) timeAnew(r *run) {
	if t := e.cfg.Truth; r.training && !r.halted && !r.resting && r.stopped == "" && (t.Silent == 0 || t.uniform(drawSilent, r.id) >= t.Silent) {
		e.agenda.set(&r.pace, e.now.Add(paceAfter))
	}
}

// pace reports the mean speed since the neighbours last changed. The unit is the task's
// own: training steps, or here a thousandth of its work.
func (e *engine) pace(r *run) {
	r.paced++
	whole := r.task.SoloTime.Seconds()
	unit, steps := 1000/whole, false
	if step := r.task.Loads[0].Step; step > 0 {
		unit, steps = 1/step, true
	}
	rate := r.rate * e.cfg.Truth.factor(paceError, drawPace, r.id, r.attempt, r.paced)
	e.step(model.ThroughputReported{At: e.now, Tasks: []model.Throughput{{
		Task: r.id, Attempt: r.attempt, Rate: rate * unit, Steps: steps, Error: paceError, Since: e.now.Add(-paceAfter),
		Share: min(1, (r.trained+r.rate*seconds(e.now-r.at))/whole),
	}}})
}

// repace sets a run's rate to the rate on its slowest GPU.
func (e *engine) repace(r *run) {
	if r.halted || r.resting {
		return
	}
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
	e.end(r, model.Exited{
		Class: model.ExitGPUOOM, Code: 1, Demand: u.held + asked,
		Message: fmt.Sprintf("%s asked for on GPU %d, %s free of %s", asked, u.device.Index, free, u.device.Memory),
	})
}

// end removes a run from its GPUs and reports it.
func (e *engine) end(r *run, ev model.Exited) {
	e.agenda.drop(&r.entry)
	e.agenda.drop(&r.pace)
	e.agenda.drop(&r.copying)
	e.agenda.drop(&r.rests)
	e.save(r)
	delete(e.runs, r.id)
	if r.halted {
		e.lastStretch(r).To = e.now
	}
	e.record.left(r, e.now, outcomeOf(ev.Class))
	e.takeOff(r)
	r.training = false
	ev.At, ev.Task, ev.Attempt, ev.Peak = e.now, r.id, r.attempt, r.peak
	e.step(ev)
}

// takeOff removes a run from its GPUs and updates the speeds of the other tasks there.
func (e *engine) takeOff(r *run) {
	uses := r.uses
	r.uses = nil
	for _, u := range uses {
		r.peak = max(r.peak, u.peak)
		u.leave(e.now)
		e.energy[r.id-1] += u.energy
	}
	for _, u := range uses {
		e.heat(u.device)
		e.loads = u.device.settle(e.now, e.loads)
		for _, other := range u.device.uses {
			e.repace(other.run)
			e.timeAnew(other.run)
		}
	}
}
