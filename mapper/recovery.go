package mapper

import (
	"slices"

	"carma/mapper/units"
)

// exited takes the attempt off its GPUs and decides what becomes of the task.
func (s *State) exited(ev Exited) {
	t := s.tasks[ev.Task]
	if t == nil || t.Current() == nil || t.Current().N != ev.Attempt {
		return
	}
	a := t.Current()
	a.Ended, a.Class, a.Code, a.Message = s.now, ev.Class, ev.Code, ev.Message
	if ev.Finished > 0 {
		a.Ended = max(min(ev.Finished, s.now), a.Started, a.Launched)
		if t.TimedOut && a.Started > 0 && a.Ended <= a.Started.Add(t.TimeLimit) {
			t.TimedOut, t.Phase = false, Running // it ended in time; nobody was there to see it
		}
		if t.SlotUsed && a.Ended <= a.Started.Add(s.slot(t)) {
			t.SlotUsed, t.Phase = false, Running
		}
	}
	s.progress(t)
	if a.Started > 0 { // it has done nothing since its end
		t.Done = min(t.Done, a.Ended.Sub(a.Started).Seconds())
	}
	a.Peak = ev.Peak.Clamp()
	for _, grant := range a.Grants {
		a.Peak = max(a.Peak, s.byID[grant.GPU].resident(t.ID).Peak)
	}
	blame := verdict{}
	if ev.Class == ExitGPUOOM {
		blame = s.blame(t, a, max(ev.Demand.Clamp(), a.Peak))
	}
	if ev.Fault != nil {
		a.Fault = ev.Fault
		s.sickens(t, a, *ev.Fault)
	} else if a.Started == 0 {
		s.untested(t, a)
	}
	t.Seen = s.sightings(t)
	s.vacate(t)
	for _, grant := range a.Grants {
		s.takeOff(s.byID[grant.GPU], t.ID)
	}
	for _, o := range blame.overusers {
		s.growGrant(o)
	}
	switch {
	case ev.Class == ExitOK:
		s.learn(t, a)
	case ev.Class == ExitGPUOOM && blame.own:
		s.learnFloor(t, max(ev.Demand, a.Peak))
	default:
		s.learnFloor(t, a.Peak)
	}
	s.dirty = true

	switch {
	case t.TimedOut:
		s.finish(t, Failed, ev.Code, t.StopReason)
	case t.Overuse && ev.Class != ExitOK:
		s.overuseOver(t, a)
	case t.Overuse:
		s.finish(t, Succeeded, 0, Reason{})
	case t.SlotUsed && ev.Class != ExitOK:
		s.slotOver(t, a)
	case t.SlotUsed:
		s.finish(t, Succeeded, 0, Reason{})
	case t.Phase == Stopping:
		s.finish(t, Cancelled, ev.Code, t.StopReason)
	case ev.Class == ExitOK:
		s.finish(t, Succeeded, 0, Reason{})
	case ev.Class == ExitGPUOOM:
		s.recoverOOM(t, a, blame)
	case ev.Class == ExitInfrastructure && ev.Fault != nil && a.Started == 0:
		s.unstarted(t, a, ev)
	case ev.Class == ExitInfrastructure, ev.Class == ExitEvicted, ev.Class == ExitMPSFault, ev.Class == ExitStopped:
		s.recoverBlameless(t, a, ev)
	case ev.Class == ExitCannotStart:
		s.finish(t, Failed, ev.Code, outcome(ev))
	default: // the program's own fault, or host memory
		t.Failures++
		if t.Failures > t.Retries {
			s.finish(t, Failed, ev.Code, outcome(ev))
			return
		}
		s.requeue(t, Queued, Reason{Code: ReasonRetry, Count: t.Failures, Limit: t.Retries}.because(outcome(ev)))
	}
}

// outcome says how an attempt ended that was not asked to stop.
func outcome(ev Exited) Reason {
	r := Reason{Code: ReasonProgram, Text: ev.Message}
	switch ev.Class {
	case ExitHostOOM:
		r.Code = ReasonHostOOM
	case ExitCannotStart:
		r.Code = ReasonCannotStart
	case ExitInfrastructure:
		r.Code = ReasonInfrastructure
	case ExitEvicted:
		r.Code = ReasonEvicted
	case ExitMPSFault:
		r.Code = ReasonMPSFault
	case ExitStopped:
		r.Code = ReasonStopped
	default:
		r.Count = ev.Code
	}
	return r
}

func (s *State) takeOff(g *GPU, id TaskID) {
	g.remove(id)
	s.pace([]*GPU{g})
	if g.idle() {
		// The last samples were of tasks that are gone.
		g.SMACT, g.SMOCC, g.DRAMA = 0, 0, 0
		s.forgetMissing(g)
	}
}

// verdict says who is to blame for a GPU OOM.
type verdict struct {
	own       bool
	alone     bool        // it had its GPUs for itself
	demand    units.Bytes // the most the task is known to have wanted on one GPU
	most      units.Bytes // the most there is for it on each of its GPUs
	reason    Reason      // whose memory it was
	overusers []overuser
}

// overuser is a task that exceeds its grant on a GPU.
type overuser struct {
	gpu  *GPU
	task TaskID
}

// blame finds out whether a task that ran out of memory was over its own
// grant. If it was not, and others left no room for that grant, the neighbours
// that exceed theirs or a foreign process are to blame.
func (s *State) blame(t *Task, a *Attempt, demand units.Bytes) verdict {
	grant := a.Grants[0].Memory
	for _, g := range a.Grants {
		grant = min(grant, g.Memory)
	}
	v := verdict{own: true, demand: max(demand, grant), most: s.most(t.GPUs), alone: s.byID[a.Grants[0].GPU].alone()}
	if demand > grant {
		v.reason = Reason{Code: ReasonWantedMore, Need: demand, Have: grant}
		return v
	}
	v.reason = Reason{Code: ReasonRanOut, Have: grant}
	for _, grant := range a.Grants {
		g := s.byID[grant.GPU]
		if s.free(g) >= 0 {
			continue
		}
		if g.Foreign > 0 {
			v.own = false
			v.reason = Reason{Code: ReasonForeignUse, Have: g.Foreign, GPU: g.Index}
		}
		if s.opt.Booking == BookSamples {
			continue // nobody has a grant to be over
		}
		for _, r := range g.Residents {
			if r.Task != t.ID && r.Used > r.Grant {
				v.own = false
				v.reason = Reason{Code: ReasonNeighbour, Task: r.Task, Have: r.Used, Of: r.Grant, GPU: g.Index}
				v.overusers = append(v.overusers, overuser{g, r.Task})
			}
		}
	}
	return v
}

// growGrant raises the grant of a task that exceeds it to growFactor times what
// it uses, as far as the card has room.
func (s *State) growGrant(o overuser) {
	g, t := o.gpu, s.tasks[o.task]
	r, bookable := g.resident(o.task), s.bookable(g)
	grow := min(r.Used.Scale(growFactor)-r.Grant, bookable-g.Foreign-g.Reserved)
	if grow <= 0 || s.script.hasRegrants(s.format) {
		return
	}
	g.Bookable = bookable
	s.regrant(t, g, r.Grant+grow)
	t.Need = max(t.Need, min(r.Grant, s.ceiling(s.bookable).of(t.GPUs)))
}

// most is the most memory that n GPUs of one machine all have for one task.
// Where so many are not there any more, those that went missing under their
// tasks count.
func (s *State) most(n int) units.Bytes {
	if most := s.ceiling(s.bookable).of(n); most >= 0 {
		return most
	}
	return s.ceiling(func(g *GPU) units.Bytes { return max(0, g.Capacity-s.opt.Headroom) }).of(n)
}

// stagedFloor is the free memory that AEGIS asks for after the first GPU OOM;
// twice as much after the second.
const stagedFloor = 10 * units.GiB

// What a task gets after its own GPU OOM: after the first, its demand times
// oomFactor plus oomExtra; after each further one, its need times oomAgainFactor.
// growFactor is for a neighbour that used more than its grant.
const (
	oomFactor      = 1.25
	oomExtra       = units.GiB
	oomAgainFactor = 1.5
	growFactor     = 1.1
)

// maxBackoffDoublings bounds the back-off: 64 times the option.
const maxBackoffDoublings = 6

// recoverOOM relaunches a task with more memory (see above), and the last time
// with GPUs of its own.
func (s *State) recoverOOM(t *Task, a *Attempt, v verdict) {
	if !v.own && t.Blameless < s.opt.BlamelessRetries {
		a.Blameless = true
		t.Blameless++
		s.requeue(t, Recovering, Reason{Code: ReasonOOMBlameless}.because(v.reason))
		return
	}
	t.OOMs++
	switch {
	case v.alone && v.demand+s.opt.Headroom >= v.most:
		s.finish(t, Failed, a.Code, Reason{Code: ReasonOOMAlone}.because(v.reason))
		return
	case t.OOMs >= s.opt.Attempts:
		s.finish(t, Failed, a.Code, Reason{Code: ReasonOOMTooOften, Count: t.OOMs}.because(v.reason))
		return
	case s.opt.Recovery == RecoverOriginal:
		t.Alone = true
	case s.opt.Recovery == RecoverStaged:
		t.Need = max(t.Need, stagedFloor*units.Bytes(min(t.OOMs, 2)))
		t.Alone = t.Alone || t.OOMs > 2
	case t.OOMs == 1:
		t.Need = afterOOM(max(v.demand, t.Need))
	default:
		t.Need = max(v.demand, t.Need).Scale(oomAgainFactor).Clamp()
	}
	if t.OOMs == s.opt.Attempts-1 && !v.alone {
		t.Alone, t.Need = true, v.demand
	}
	if t.Need > v.most {
		t.Alone = true
	}
	if t.Alone { // as much foreign use as the headroom is put up with
		t.Need = max(0, min(t.Need, v.most-s.opt.Headroom))
	}
	oom := Reason{Code: ReasonOOM}.because(v.reason)
	if no := s.checkQuota(t.GPUs, t.Need, s.alone(t)); no != nil {
		s.finish(t, Failed, a.Code, no.Reason.because(oom))
		return
	}
	s.requeue(t, Recovering, oom)
}

// afterOOM is the need of a task after its first GPU OOM.
func afterOOM(demand units.Bytes) units.Bytes { return (demand.Scale(oomFactor) + oomExtra).Clamp() }

// recoverBlameless runs a task again, on another GPU if it can, after a failure
// that was not its own. The wait before that doubles, at most maxBackoffDoublings
// times.
func (s *State) recoverBlameless(t *Task, a *Attempt, ev Exited) {
	a.Blameless = true
	t.Blameless++
	if t.Blameless > s.opt.BlamelessRetries {
		s.finish(t, Failed, ev.Code, Reason{Code: ReasonTooOften, Count: t.Blameless}.because(outcome(ev)))
		return
	}
	if ev.Class == ExitInfrastructure {
		for _, grant := range a.Grants {
			if !slices.Contains(t.Avoid, grant.GPU) {
				t.Avoid = append(t.Avoid, grant.GPU)
			}
		}
	}
	if ev.Class == ExitInfrastructure || ev.Class == ExitMPSFault { // what failed needs time to come back
		t.NotBefore = s.now.Add(s.opt.Backoff << min(t.Blameless-1, maxBackoffDoublings))
	}
	s.requeue(t, Recovering, outcome(ev))
}

// requeue puts a task back into a queue after an attempt.
func (s *State) requeue(t *Task, phase Phase, reason Reason) {
	if fate := s.script.fate(t.ID); fate != nil {
		s.meet(t, fate)
		return
	}
	s.runAgain(t, phase, reason)
}

// runAgain does the work of requeue.
func (s *State) runAgain(t *Task, phase Phase, reason Reason) {
	t.Reason, t.Last().Reason = reason, reason
	s.decide(Requeue{Task: t.ID, Need: t.Need, Alone: t.Alone, Phase: phase, Reason: reason})
	s.enqueue(t, phase)
}
