package mapper

import (
	"slices"
	"time"

	"carma/internal/units"
)

// An engine or a GPU that starts nothing costs no task anything: a start that
// fails for its reasons counts against the engine or the GPU, and the task goes
// back to the place it had. After failed starts of several tasks launching
// pauses there; from then on one task at a time is launched as a test, at
// growing intervals, and the first container that starts ends the pause.
//
// Whether a task is itself to blame shows beside others: a failed start counts
// against a task as soon as another one has started at the same place.

// BreakerScope is the place of a fault that kept a container from starting.
type BreakerScope string

// The scopes, beside [ScopeNamespace].
const (
	ScopeEngine BreakerScope = "engine" // the container engine, or what it needs of the machine
	ScopeGPU    BreakerScope = "gpu"    // the GPUs it was to get, or their driver
)

// Fault is why an attempt could not start through no fault of the task.
type Fault struct {
	Scope BreakerScope `json:"scope"`
	// Code names the fault for programs, Cause and Remedy for people; the
	// mapper only keeps them.
	Code   string `json:"code,omitempty"`
	Cause  string `json:"cause"`
	Remedy string `json:"remedy,omitempty"`
	// GPUs are the GPUs at fault; none: all that the attempt was to get.
	GPUs []GPUID `json:"gpus,omitempty"`
}

const (
	// sickTasks is the number of tasks whose starts fail one after the other
	// before launching pauses.
	sickTasks = 3
	// sickStarts is the number of failed starts in a row after which an engine
	// or GPU is called sick, be they of one task.
	sickStarts = 3
	// lastTest is the longest time between two test launches.
	lastTest = 5 * time.Minute
	// sickNames bounds how many of the failed tasks are remembered.
	sickNames = 64
)

// breaker is a row of failed starts on the engine or on a GPU, or of refusals by a
// namespace.
type breaker struct {
	Namespace string `json:"namespace,omitempty"`
	// Unknown: the messages did not tell the cause, and evidence blamed the engine.
	Unknown bool `json:"unknown,omitempty"`

	Fault    Fault         `json:"fault"` // the latest
	Since    units.Instant `json:"since"`
	Failures int           `json:"failures"`
	// Tasks are the tasks whose starts have failed, the latest last.
	Tasks []TaskID `json:"tasks"`
	// Wait is the time between two test launches; 0: launching goes on.
	Wait time.Duration `json:"wait,omitempty"`
	// Test is when the next test launch may be, Testing the task that was
	// launched as the last one.
	Test    units.Instant `json:"test,omitempty"`
	Testing TaskID        `json:"testing,omitempty"`
}

// nextProbe is the time between the pause and the first test launch; it doubles
// with each that fails. 5 s, as the back-off is 10 s.
func (s *State) nextProbe() time.Duration {
	return min(max(s.opt.Backoff/2, time.Millisecond), lastTest)
}

// paused reports whether only test launches are made.
func (i *breaker) paused() bool { return i != nil && i.Wait > 0 }

// launchesPaused reports whether nothing is launched now.
func (i *breaker) shut(now units.Instant) bool { return i.paused() && now < i.Test }

func (i *breaker) clone() *breaker {
	if i == nil {
		return nil
	}
	c := *i
	c.Tasks = slices.Clone(i.Tasks)
	return &c
}

// openBreaker counts a failed start against the engine or GPUs.
func (s *State) openBreaker(t *Task, a *Attempt, f Fault) {
	if f.Scope == ScopeNamespace {
		s.fills(t, f)
		s.inconclusive(t.ID)
		return
	}
	if i := s.fullAt(t.Namespace); i != nil && i.Testing == t.ID {
		s.probeSoon(i)
	}
	if f.Scope == ScopeUnknown {
		s.complains(t, f)
		return
	}
	if f.Scope != ScopeGPU {
		s.engineBreaker = s.recordFailure(s.engineBreaker, t, f)
		return
	}
	for _, grant := range a.Grants {
		if f.of(grant.GPU) {
			g := s.byID[grant.GPU]
			g.Breaker = s.recordFailure(g.Breaker, t, f)
			g.markDirty()
		}
	}
}

// of reports whether a GPU of the attempt is at fault.
func (f *Fault) of(id GPUID) bool {
	return f.Scope == ScopeGPU && (len(f.GPUs) == 0 || slices.Contains(f.GPUs, id))
}

// recordFailure adds a failed start to an illness.
func (s *State) recordFailure(i *breaker, t *Task, f Fault) *breaker {
	if i == nil {
		i = &breaker{Since: s.now}
	}
	i.Fault, i.Failures = f, i.Failures+1
	i.failed(t.ID)
	switch {
	case i.paused() && i.Testing == t.ID:
		i.Wait, i.Testing = min(2*i.Wait, lastTest), 0
		s.probeAt(i, s.now.Add(i.Wait))
	case !i.paused() && len(i.Tasks) >= sickTasks:
		i.Wait = s.nextProbe()
		s.probeAt(i, s.now.Add(i.Wait))
	}
	s.cache.ceilings, s.dirty = [2]ceiling{}, true
	return i
}

// failed notes a task as the latest whose start has failed.
func (i *breaker) failed(id TaskID) {
	i.Tasks = append(slices.DeleteFunc(i.Tasks, func(o TaskID) bool { return o == id }), id)
	i.Tasks = i.Tasks[max(0, len(i.Tasks)-sickNames):]
}

func (s *State) probeAt(i *breaker, at units.Instant) {
	i.Test = at
	s.at(at, timer{})
}

// probeTargets notes a launch on a paused engine or GPU: it is the test. If it takes
// long, for its image say, the next test does not wait for it for ever.
func (s *State) probeTargets(i *breaker, id TaskID) {
	if i.paused() {
		i.Testing = id
		s.probeAt(i, s.now.Add(lastTest))
		s.cache.ceilings = [2]ceiling{}
	}
}

// unprobed follows the end of an attempt whose start was not seen. If it was the
// test and told nothing, because it was stopped or failed by itself, another test
// may follow.
func (s *State) unprobed(t *Task, a *Attempt) {
	switch a.Class {
	case ExitInfrastructure, ExitCannotStart, ExitStopped:
	default:
		s.startSucceeded(t, a) // its program has run
		return
	}
	s.inconclusive(t.ID)
}

// inconclusive follows that a test has told nothing.
func (s *State) inconclusive(id TaskID) {
	for _, i := range s.breakers() {
		if i.Testing == id {
			s.probeSoon(i)
		}
	}
}

func (s *State) probeSoon(i *breaker) {
	i.Testing = 0
	s.probeAt(i, s.now)
	s.cache.ceilings, s.dirty = [2]ceiling{}, true
}

// breakers returns the illnesses of the engine and the GPUs, and the full namespaces,
// in order.
func (s *State) breakers() []*breaker {
	var all []*breaker
	if s.engineBreaker != nil {
		all = append(all, s.engineBreaker)
	}
	for _, g := range s.gpus {
		if g.Breaker != nil {
			all = append(all, g.Breaker)
		}
	}
	return append(all, s.namespaceBreakers...)
}

// startSucceeded ends the illnesses of the engine and of the GPUs on which a task
// has started.
func (s *State) startSucceeded(t *Task, a *Attempt) {
	t.StartFailures, t.StartFailuresWhileOthersStart, t.From = 0, 0, place{}
	s.taskStarted(t.ID)
	if i := s.fullAt(t.Namespace); i != nil && i.Testing == t.ID {
		s.opens(i)
	}
	s.engineBreaker = s.closeBreakers(s.engineBreaker, t.ID)
	for _, grant := range a.Grants {
		g := s.byID[grant.GPU]
		g.Breaker = s.closeBreakers(g.Breaker, t.ID)
	}
}

// closeBreakers ends an illness, because a task has started. Tasks that could not start
// meanwhile get one strike each.
func (s *State) closeBreakers(i *breaker, started TaskID) *breaker {
	if i == nil {
		return nil
	}
	for _, id := range i.Tasks {
		if t := s.tasks[id]; t != nil && id != started {
			t.StartFailuresWhileOthersStart++
		}
	}
	if i.paused() {
		s.letGo(i)
	}
	s.cache.ceilings, s.dirty = [2]ceiling{}, true
	return nil
}

// letGo ends the back-off of the tasks whose starts have failed.
func (s *State) letGo(i *breaker) {
	for _, id := range i.Tasks {
		if t := s.tasks[id]; t != nil && t.StartFailures > 0 {
			t.NotBefore = 0
		}
	}
}

// probeAgain lets everything sick be tried at once, because the engine or the daemon
// has begun anew.
func (s *State) probeAgain() {
	for _, i := range s.breakers() {
		s.letGo(i)
		if i.paused() {
			i.Wait = s.nextProbe()
			s.probeAt(i, s.now)
		}
	}
	if s.canary.Next > 0 {
		s.canaryAt(s.now)
	}
	s.cache.ceilings = [2]ceiling{}
}

// noteStartFailure puts a task back in its place after a start that failed through no
// fault of its own. The task fails only if others could start again and again
// where it could not.
func (s *State) noteStartFailure(t *Task, a *Attempt, ev Exited) {
	a.NotAtFault = true
	grants := a.Grants
	t.StartFailures++
	t.mergeStartFailures()
	unknown := ev.Fault.Scope == ScopeUnknown
	switch {
	case t.StartFailuresWhileOthersStart <= s.opt.BlamelessRetries:
	case unknown:
		t.Last().NotAtFault, t.Last().Class = false, ExitCannotStart
		s.finish(t, Failed, ev.Code, Reason{Code: ReasonNeverStarted, Count: t.StartFailures}.because(outcome(ev)))
		return
	default:
		s.finish(t, Failed, ev.Code, Reason{Code: ReasonOthersStart, Count: t.StartFailuresWhileOthersStart}.because(outcome(ev)))
		return
	}
	for _, grant := range grants {
		if ev.Fault.of(grant.GPU) && !slices.Contains(t.Avoid, grant.GPU) {
			t.Avoid = append(t.Avoid, grant.GPU)
		}
	}
	if !s.engineBreaker.paused() && ev.Fault.Scope != ScopeNamespace { // that has set it
		t.NotBefore = s.now.Add(s.startBackoff(t))
	}
	from := t.From
	if from.Phase == "" { // a daemon that did not note it has launched it
		from = place{Queued, t.QueuedAt, 0}
	}
	t.Reason = Reason{Code: ReasonUnstarted, Text: ev.Message}
	if unknown && t.StartFailuresWhileOthersStart > 0 {
		t.Reason.Limit = s.opt.BlamelessRetries + 1 - t.StartFailuresWhileOthersStart
	}
	if ev.Fault.Scope == ScopeNamespace {
		t.Reason = Reason{Code: ReasonNamespaceFull, Name: t.Namespace, Text: ev.Fault.Cause, Remedy: ev.Fault.Remedy}
	}
	switch fate := s.recorded.fate(t.ID).(type) {
	case Finish:
		s.meet(t, fate)
		return
	case Requeue:
		t.NextGrant, t.NextExclusive, t.Reason = fate.Need, fate.Alone, fate.Reason
	}
	t.Last().Reason = t.Reason
	s.decide(Requeue{Task: t.ID, Need: t.NextGrant, Alone: t.NextExclusive, Phase: from.Phase, Reason: t.Reason})
	s.enqueueAt(t, from.Phase, from.QueuedAt)
	t.BlockedAt = from.BlockedAt
}

// mergeStartFailures keeps one entry for a row of failed starts, that of the last.
func (t *Task) mergeStartFailures() {
	n := len(t.Attempts)
	if n < 2 || t.Attempts[n-2].Fault == nil || t.Attempts[n-2].Started != 0 {
		return
	}
	last := t.Attempts[n-1]
	last.Starts = last.starts() + t.Attempts[n-2].starts()
	t.Attempts = append(t.Attempts[:n-2:n-2], last)
}

// starts is how many launches an entry stands for.
func (a *Attempt) starts() int { return max(a.Starts, 1) }

// rescheduleProbe is the first instant at which a GPU that is shut is open for a test.
func (s *State) rescheduleProbe() units.Instant {
	next := units.Never
	for _, g := range s.gpus {
		if g.Breaker.shut(s.now) {
			next = min(next, g.Breaker.Test)
		}
	}
	return next
}
