package sim

import (
	"time"

	"carma/mapper"
)

// Some tasks do nothing for a while in the middle of their work, and hold their memory:
// a notebook whose owner has gone home. [Truth.Idle] of them do.

// IdleFor is how long such a task does nothing, unless it is stopped before.
const IdleFor = 4 * time.Hour

// The pause begins between these shares of the work.
const (
	idleFrom = 0.2
	idleTo   = 0.8
)

// Pauses reports whether a task does nothing for a while, by its place in order of
// arrival, and after how much of its work.
func (t Truth) Pauses(i int, task *Task) (at time.Duration, ok bool) {
	if t.Idle == 0 || t.uniform(drawIdle, i) >= t.Idle {
		return 0, false
	}
	return time.Duration(float64(task.SoloTime) * (idleFrom + (idleTo-idleFrom)*t.uniform(drawIdleAt, i))), true
}

// pausesAt is the point of a run's work at which it does nothing for a while; 0: it has
// done so, or never does. What a checkpoint holds is counted.
func (e *engine) pausesAt(r *run) float64 {
	at, ok := e.cfg.Truth.Pauses(int(r.id)-1, r.task)
	if !ok || r.rested || at.Seconds() <= e.saved[r.id-1] {
		return 0
	}
	return at.Seconds() - e.saved[r.id-1]
}

// rest has a run do nothing from now on.
func (e *engine) rest(r *run) {
	r.resting, r.rested, r.rate = true, true, 0
	r.rests = entry{rank: rankRest, seq: int64(r.id), run: r}
	e.agenda.set(&r.rests, e.now.Add(IdleFor))
	e.agenda.drop(&r.pace)
	e.rests[r.id-1] = Stretch{Attempt: r.attempt, From: e.now}
	e.settle(r)
}

// wakes is when somebody comes back to a run that does nothing, types, and has it work.
func (e *engine) wakes(r *run) {
	r.resting, r.at = false, e.now
	e.rests[r.id-1].To = e.now
	if !r.halted {
		r.rate = r.slowest(func(u *use) float64 { return u.device.Speed })
		e.settle(r)
		e.schedule(r)
	}
	e.step(mapper.TerminalInput{At: e.now, Task: r.id})
}

// resting is for how long the attempt that finished did nothing, and how much of that it
// was suspended.
func (r Record) resting() (whole, away time.Duration) {
	if n := len(r.Attempts); n == 0 || r.Rest.Attempt != n || r.Rest.To == 0 {
		return 0, 0
	}
	for _, s := range r.Stretches {
		if s.Attempt == r.Rest.Attempt {
			away += max(0, min(s.To, r.Rest.To).Sub(max(s.From, r.Rest.From)))
		}
	}
	return r.Rest.To.Sub(r.Rest.From), away
}
