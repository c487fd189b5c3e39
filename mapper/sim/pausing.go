package sim

import (
	"time"

	"carma/mapper/model"
)

// Some tasks are idle for a while in the middle of their work, and keep their memory,
// like a notebook that nobody uses. [Truth.Idle] is their share.

// IdleFor is the idle time of such a task, unless it is stopped earlier.
const IdleFor = 4 * time.Hour

// The idle time begins after a share of the work between these two.
const (
	idleFrom = 0.2
	idleTo   = 0.8
)

// Pauses reports whether the task that arrived as number i is idle for a while, and after
// how much of its work.
func (t Truth) Pauses(i int, task *Task) (at time.Duration, ok bool) {
	if t.Idle == 0 || t.uniform(drawIdle, i) >= t.Idle {
		return 0, false
	}
	return time.Duration(float64(task.SoloTime) * (idleFrom + (idleTo-idleFrom)*t.uniform(drawIdleAt, i))), true
}

// pausesAt returns the point of a run's work at which it becomes idle, or 0 if it has
// been idle or never is. The work in a checkpoint counts.
func (e *engine) pausesAt(r *run) float64 {
	at, ok := e.cfg.Truth.Pauses(int(r.id)-1, r.task)
	if !ok || r.rested || at.Seconds() <= e.saved[r.id-1] {
		return 0
	}
	return at.Seconds() - e.saved[r.id-1]
}

// rest makes a run idle from now on.
func (e *engine) rest(r *run) {
	r.resting, r.rested, r.rate = true, true, 0
	r.rests = entry{rank: rankRest, seq: int64(r.id), run: r}
	e.agenda.set(&r.rests, e.now.Add(IdleFor))
	e.agenda.drop(&r.pace)
	e.rests[r.id-1] = Stretch{Attempt: r.attempt, From: e.now}
	e.settle(r)
}

// wakes ends the idle time of a run, as if its user had returned and given it work.
func (e *engine) wakes(r *run) {
	r.resting, r.at = false, e.now
	e.rests[r.id-1].To = e.now
	if !r.halted {
		r.rate = r.slowest(func(u *use) float64 { return u.device.Speed })
		e.settle(r)
		e.schedule(r)
	}
	e.step(model.TerminalInput{At: e.now, Task: r.id})
}

// resting returns the idle time of the attempt that finished, and for how much of it the
// attempt was suspended.
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
