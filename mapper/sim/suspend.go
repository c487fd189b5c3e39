package sim

import (
	"fmt"
	"math"
	"slices"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
)

// Suspending describes how the modelled GPUs suspend and resume tasks. With the zero
// value they cannot.
type Suspending struct {
	// Rate is the speed of a copy to or from host memory, in bytes per second for each
	// GPU. The directions are independent; copies in one direction follow each other.
	Rate units.Bytes
	// Pause is the time of a suspension or resumption in addition to the copy.
	Pause time.Duration
	// Host is the memory of each machine for the GPU memory of suspended tasks. The host
	// memory of the tasks themselves is not modelled.
	Host units.Bytes
	// Leave is the share of the tasks whose programs vacate their GPUs on request, on any
	// number of GPUs; these programs keep their contexts there. If Leave is not 0, the
	// driver suspends no task.
	Leave float64
}

// Defaults. A full card of 80 GB took 15 s (NVIDIA/cuda-checkpoint#29), the calls around
// the copy some tenths of a second.
const (
	SuspendPause = 200 * time.Millisecond
	SuspendHost  = 512 * units.GiB
)

// ownHost is the host memory allocated for each task itself, almost nothing.
const ownHost = units.MiB

func (s Suspending) on() bool { return s.Rate > 0 }

func (s Suspending) check() error {
	switch {
	case s == Suspending{}:
		return nil
	case s.Rate < units.MiB || s.Rate > units.TiB:
		return fmt.Errorf("suspending copies %s per second; write for example 5GB/s", s.Rate)
	case s.Pause < 0 || s.Pause > time.Hour:
		return fmt.Errorf("suspending takes %s beside the copy; write for example 200ms", s.Pause)
	case !(s.Leave >= 0 && s.Leave <= 1):
		return fmt.Errorf("%v of the tasks leave by themselves; write a share from 0 to 1", s.Leave)
	case s.Host < units.MiB || s.Host > 1024*units.TiB:
		return fmt.Errorf("suspending has %s of host memory; write for example 512G", s.Host)
	}
	return nil
}

// kind returns the kind of suspension that the GPUs report.
func (s Suspending) kind() model.SuspendKind {
	if s.on() && s.Leave == 0 {
		return model.SuspendMove
	}
	return model.SuspendNever
}

// hosts returns the machines of some GPUs.
func (s Suspending) hosts(gpus []model.GPUInfo) (all []model.HostInfo) {
	for _, g := range gpus {
		if !slices.ContainsFunc(all, func(h model.HostInfo) bool { return h.Node == g.Node }) {
			all = append(all, model.HostInfo{Node: g.Node, Total: s.Host, Memory: s.Host})
		}
	}
	return all
}

// Stretch is one suspension of a task: from the decision until the task continued, or
// until its attempt ended.
type Stretch struct {
	Attempt  int
	From, To units.Instant
	// Copied is the time of the copies of the task's memory in both directions, including
	// the pauses and the waits for the link.
	Copied time.Duration
}

// lasts returns the time of a copy that begins now, in a direction that is busy until the
// instant until, and the instant at which the direction is free again.
func (s Suspending) lasts(now units.Instant, until units.Instant, n units.Bytes) (time.Duration, units.Instant) {
	free := max(now, until).Add(time.Duration(math.Ceil(float64(n) / float64(s.Rate) * float64(time.Second))))
	return free.Sub(now) + s.Pause, free
}

// suspend halts a run at once. Its memory stays until the copy has ended; a program that
// vacates its GPUs keeps its context.
func (e *engine) suspend(d model.Suspend) {
	r := e.runs[d.Task]
	r.trained = min(r.goal, r.trained+r.rate*seconds(e.now-r.at))
	r.at, r.rate, r.halted, r.itself, r.off = e.now, 0, true, d.Leave, r.off[:0]
	e.agenda.drop(&r.entry)
	e.agenda.drop(&r.pace)
	e.settle(r)
	var longest time.Duration
	for _, u := range r.uses {
		n := u.held
		if r.itself {
			n -= min(n, r.task.Context)
		}
		r.off = append(r.off, n)
		took, free := e.cfg.Suspending.lasts(e.now, u.device.out, n)
		u.device.out, longest = free, max(longest, took)
	}
	e.stretches[r.id-1] = append(e.stretches[r.id-1], Stretch{Attempt: r.attempt, From: e.now, Copied: longest})
	r.copying = entry{rank: rankCopy, seq: int64(r.id), run: r}
	e.agenda.set(&r.copying, e.now.Add(longest))
}

// resume places a run on GPUs again and allocates its memory there before the copy.
func (e *engine) resume(d model.Resume) {
	r := e.runs[d.Task]
	if !r.itself {
		u := &use{run: r, device: e.byID[d.Grants[0].GPU], load: r.task.Loads[0], peak: r.peak}
		u.device.join(u, e.now)
		r.uses = []*use{u}
	}
	r.came, r.ran = e.now, 0
	longest := e.cfg.Suspending.Pause
	if r.lacks = e.takeAgain(r); r.lacks == nil {
		for i, u := range r.uses {
			took, free := e.cfg.Suspending.lasts(e.now, u.device.in, r.off[i])
			u.device.in, longest = free, max(longest, took)
		}
	}
	e.lastStretch(r).Copied += longest
	for _, u := range r.uses {
		e.heat(u.device)
	}
	r.copying = entry{rank: rankCopy, seq: int64(r.id), run: r}
	e.agenda.set(&r.copying, e.now.Add(longest))
}

// takeAgain allocates the memory that a run had. If a GPU has no room, it returns the use
// there and allocates nothing.
func (e *engine) takeAgain(r *run) (full *use) {
	for i, u := range r.uses {
		if u.alloc(e.now, r.off[i]) {
			continue
		}
		for j, u := range r.uses[:i] {
			u.free(e.now, r.off[j])
		}
		return u
	}
	return nil
}

func (e *engine) lastStretch(r *run) *Stretch {
	all := e.stretches[r.id-1]
	return &all[len(all)-1]
}

// copied handles the end of a copy in either direction.
func (e *engine) copied(r *run) {
	switch {
	case !r.away:
		r.away = true
		e.record.left(r, e.now, OutcomeAway)
		e.goes(r)
		e.step(model.SuspendDone{At: e.now, Task: r.id, Attempt: r.attempt})
	case r.lacks != nil:
		d, n := r.lacks.device, r.off[slices.Index(r.uses, r.lacks)]
		e.record.left(r, e.now, OutcomeAway)
		if !r.itself {
			e.takeOff(r)
		}
		e.step(model.Resumed{At: e.now, Task: r.id, Attempt: r.attempt, Failure: fmt.Sprintf("%s are to go to GPU %d, of which %s are free", n, d.Index, d.Memory-d.held)})
	default:
		r.away, r.halted, r.at, r.ran = false, false, e.now, e.now
		e.lastStretch(r).To = e.now
		if !r.resting {
			r.rate = r.slowest(func(u *use) float64 { return u.device.Speed })
		}
		e.settle(r)
		if !r.resting {
			e.schedule(r)
		}
		e.step(model.Resumed{At: e.now, Task: r.id, Attempt: r.attempt})
	}
}

// goes removes a run from its GPUs, except for the context of a program that vacates
// them.
func (e *engine) goes(r *run) {
	if !r.itself {
		e.takeOff(r)
		return
	}
	for i, u := range r.uses {
		u.free(e.now, r.off[i])
		e.heat(u.device)
	}
}

// leaves reports whether the program of a run vacates its GPUs on request.
func (e *engine) leaves(r *run) bool {
	return e.cfg.Suspending.Leave > 0 && e.cfg.Truth.uniform(drawLeave, r.task.Name) < e.cfg.Suspending.Leave
}
