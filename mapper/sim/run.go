package sim

import (
	"fmt"
	"math"
	"time"

	"carma/internal/units"
	"carma/mapper"
)

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
	pace     entry         // when its output tells how fast it goes
	paced    int           // how often it has told
	stopped  string        // why; empty: it is not

	// came is when it was put on the GPUs that it has, ran when it began to run
	// there; 0: not yet.
	came, ran units.Instant
	// halted: it is suspending, suspended or resuming. away: it has left its GPUs,
	// where it had off, and at most peak. itself: it left by itself. lacks is the
	// one that it is to come back to and that has no room.
	halted, away, itself bool
	off                  []units.Bytes
	peak                 units.Bytes
	lacks                *use
	copying              entry // the end of a copy

	// resting: it does nothing, until rests. rested: it has done so.
	resting, rested bool
	rests           entry
}

// begin is the container's first moment.
func (e *engine) begin(r *run) {
	r.rank, r.at, r.ran, r.rate = rankProgress, e.now, e.now, r.slowest(func(u *use) float64 { return u.device.Speed })
	r.plan = e.cfg.Truth.plan(int(r.id), r.task, e.smallest)
	for _, u := range r.uses {
		u.device.join(u, e.now)
	}
	e.step(mapper.Started{At: e.now, Task: r.id, Attempt: r.attempt})
	if e.leaves(r) {
		e.step(mapper.VacatesOnRequest{At: e.now, Task: r.id, Attempt: r.attempt})
	}
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
	if r.halted { // in the step that it began with
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
				e.timeAnew(o)
			}
		}
	}
	e.repace(r)
	e.timeAnew(r)
}

// timeAnew has the output of a run tell how fast it goes, once that has been the
// same for a while.
func (e *engine) timeAnew(r *run) {
	if t := e.cfg.Truth; r.training && !r.halted && !r.resting && r.stopped == "" && (t.Silent == 0 || t.uniform(drawSilent, r.id) >= t.Silent) {
		e.agenda.set(&r.pace, e.now.Add(paceAfter))
	}
}

// pace reports the mean speed since neighbours have changed last. What a line
// counts is the task's own: here it is a thousandth of its work.
func (e *engine) pace(r *run) {
	r.paced++
	whole := r.task.SoloTime.Seconds()
	unit, steps := 1000/whole, false
	if step := r.task.Loads[0].Step; step > 0 {
		unit, steps = 1/step, true
	}
	rate := r.rate * e.cfg.Truth.factor(paceError, drawPace, r.id, r.attempt, r.paced)
	e.step(mapper.ThroughputReported{At: e.now, Tasks: []mapper.Throughput{{
		Task: r.id, Attempt: r.attempt, Rate: rate * unit, Steps: steps, Error: paceError, Since: e.now.Add(-paceAfter),
		Share: min(1, (r.trained+r.rate*seconds(e.now-r.at))/whole),
	}}})
}

// repace gives a run the rate of its slowest GPU.
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
	e.end(r, mapper.Exited{
		Class: mapper.ExitGPUOOM, Code: 1, Demand: u.held + asked,
		Message: fmt.Sprintf("%s asked for on GPU %d, %s free of %s", asked, u.device.Index, free, u.device.Memory),
	})
}

// end takes a run off its GPUs and reports it.
func (e *engine) end(r *run, ev mapper.Exited) {
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

// takeOff takes a run off the GPUs that it has; those who stay go on at their speeds.
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
