package runner

import (
	"context"

	"carma/containers"
	"carma/mapper"
	"carma/mapper/units"
)

// ending is how an attempt ended. It becomes an event.
type ending struct {
	class   mapper.Class
	code    int
	message string
	demand  units.Bytes
	fault   *mapper.Fault // why it could not start, if the task is not at fault; else nil
	// finished is when the container ended, if it had ended before this daemon
	// found it; else 0.
	finished units.Instant
}

// endedByEngine reports whether a container died of a signal because its engine
// ends: `systemctl restart docker` ends all containers that way, and reports
// their ends before it is gone itself.
func (w *worker) endedByEngine(ctx context.Context, exit containers.Exit) bool {
	if (exit.Code != 137 && exit.Code != 143) || exit.OOMKilled || w.stopRequested() {
		return false
	}
	e, ok := able[containers.Ender](w.Driver)
	return ok && e.Ending(ctx)
}

// cardFull is the share of a card's memory in use above which a failed
// allocation without a known reason counts as out of memory.
const cardFull = 0.95

// classify says how a container that ran has ended.
func (w *worker) classify(ctx context.Context, exit containers.Exit, tail *containers.Tail, outage bool) ending {
	// A container that had ended when this daemon found it may have gone down
	// with the engine, or with the machine. No clock is asked: somebody may
	// have set it.
	unseen := w.adopted != nil && w.adopted.State == containers.StateExited && !exit.Finished.IsZero()
	facts := containers.Facts{Stopped: w.stopRequested() && !unseen, EngineLost: outage || unseen || w.endedByEngine(ctx, exit)}
	for _, grant := range w.grants() {
		if w.monitor.fullness(string(grant.GPU), w.capacity(grant.GPU)) > cardFull {
			facts.CardFull = true
		}
	}
	v := containers.Classify(exit, tail.Lines(), facts)
	if v.Class == containers.ClassGPUOOM && !unseen {
		w.catchUp(ctx, exit)
	}
	if w.mpsFault(ctx, v.Class, v.CUDA) {
		v.Class, v.Message = containers.ClassMPSFault, "the MPS server failed under it, by this task's doing or another's; "+v.Message
	}
	if w.withoutGPU.Load() && !w.stopRequested() {
		v.Class, v.Message = containers.ClassMPSFault, "it could not reach the MPS server and went on without its GPU"
	}
	if v.Class == containers.ClassMPSFault {
		w.attempts.Go(func() { w.mendMPS(ctx) })
	}
	if v.Start != nil {
		return w.unstarted(v.Start, v.Start.Text)
	}
	if why := w.lostWhy(); why != "" && !w.stopRequested() {
		v.Class, v.Message = containers.ClassInfrastructure, "lost while it was suspended: "+why
	}
	end := ending{class: mapper.Class(v.Class), code: v.Code, message: v.Message, demand: units.Bytes(v.Demand)}
	if unseen {
		end.finished = w.Clock.FromWall(exit.Finished)
	}
	return end
}

// exited returns the end of the attempt as a change, with its peak, curve and
// energy.
func (w *worker) exited(end ending) *change {
	task, attempt := w.launch.Task, w.launch.Attempt
	peak, seen := w.monitor.sighting(task, attempt)
	untouched := w.monitor.neverTouched(attemptKey{task, attempt})
	w.monitor.forget(task, attempt)
	params := w.following.params()
	host := w.hostMem.forget(attemptKey{task, attempt})
	if _, share := w.booked(); end.class == mapper.ExitHostOOM {
		host = max(host, share.Limit) // its limit was reached
	}
	joules := w.energy.leave(w.Clock.Now(), attemptKey{task, attempt})
	ev := mapper.Exited{
		At: w.Clock.Now(), Task: task, Attempt: attempt, Class: end.class, Code: end.code,
		Peak: peak, HostPeak: host, Demand: end.demand, Message: end.message, Finished: end.finished, Fault: end.fault,
	}
	if w.rec.Job != nil && (end.fault == nil || end.fault.Scope != mapper.ScopeNamespace) { // refused by a full namespace, its pod still waits
		ev.Again = nextPod
	}
	ev.Filled = seen.preallocates(w.smallest(&mapper.Attempt{Grants: w.grants()}), w.opt.SampleEvery, ev.At)
	return &change{keep: true, events: func(units.Instant) ([]mapper.Event, []*Record, error) {
		if rec, _ := w.records.get(task); rec != nil && (seen != nil || params != nil || joules > 0 || untouched) {
			return []mapper.Event{ev}, []*Record{rec.withCurve(attempt, seen).withParams(params).withEnergy(attempt, joules).withUntouched(attempt, untouched)}, nil
		}
		return []mapper.Event{ev}, nil, nil
	}}
}
