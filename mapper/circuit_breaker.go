package mapper

import (
	"slices"
	"time"

	"carma/internal/units"
)

// An engine or a GPU on which nothing starts costs no task an attempt: such a failed
// start counts against the engine or the GPU, and the task returns to its place in the
// queue. After failed starts of several tasks the breaker opens and launching pauses
// there. From then on one probe task at a time is launched, at growing intervals, and the
// first container that starts closes the breaker.
//
// Other tasks show whether a task is itself at fault: a failed start counts against a
// task as soon as another one has started at the same place.

// BreakerScope says where a fault is that kept a container from starting.
type BreakerScope string

// The scopes, beside [ScopeNamespace].
const (
	ScopeEngine BreakerScope = "engine" // the container engine, or what it needs of the machine
	ScopeGPU    BreakerScope = "gpu"    // the GPUs it was to get, or their driver
)

// Fault says why an attempt could not start through no fault of the task.
type Fault struct {
	Scope BreakerScope `json:"scope"`
	// Code names the fault for programs, Cause and Remedy for people. The mapper only
	// stores them.
	Code   string `json:"code,omitempty"`
	Cause  string `json:"cause"`
	Remedy string `json:"remedy,omitempty"`
	// GPUs are the GPUs at fault, or empty if all GPUs of the attempt are.
	GPUs []GPUID `json:"gpus,omitempty"`
}

const (
	// sickTasks is the number of tasks with consecutive failed starts after which
	// launching pauses.
	sickTasks = 3
	// sickStarts is the number of consecutive failed starts, also of one task, after
	// which an engine or GPU is reported as unhealthy.
	sickStarts = 3
	// lastTest is the longest time between two probe launches.
	lastTest = 5 * time.Minute
	// sickNames bounds the number of failed tasks that are stored.
	sickNames = 64
)

// breaker counts consecutive failed starts on the engine or on a GPU, or refusals by a
// namespace.
type breaker struct {
	Namespace string `json:"namespace,omitempty"`
	// Unknown: the messages did not say the cause, and evidence points to the engine.
	Unknown bool `json:"unknown,omitempty"`

	Fault    Fault         `json:"fault"` // the latest
	Since    units.Instant `json:"since"`
	Failures int           `json:"failures"`
	// Tasks are the tasks whose starts have failed, the latest last.
	Tasks []TaskID `json:"tasks"`
	// Wait is the time between two probe launches, or 0 if launching is not paused.
	Wait time.Duration `json:"wait,omitempty"`
	// Test is the earliest instant of the next probe launch, Testing the task of the last
	// one.
	Test    units.Instant `json:"test,omitempty"`
	Testing TaskID        `json:"testing,omitempty"`
}

// nextProbe returns the time between the pause and the first probe launch. It doubles
// with each failed probe. It is 5 s by default, half of the back-off of 10 s.
func (l *ledger) nextProbe() time.Duration {
	return min(max(l.opt.Backoff/2, time.Millisecond), lastTest)
}

// paused reports whether only probe launches are allowed.
func (i *breaker) paused() bool { return i != nil && i.Wait > 0 }

// shut reports whether not even a probe launch is allowed now.
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
func (b *breakers) openBreaker(t *Task, a *Attempt, f Fault) {
	if f.Scope == ScopeNamespace {
		b.fills(t, f)
		b.inconclusive(t.ID)
		return
	}
	if i := b.fullAt(t.Namespace); i != nil && i.Testing == t.ID {
		b.probeSoon(i)
	}
	if f.Scope == ScopeUnknown {
		b.complains(t, f)
		return
	}
	if f.Scope != ScopeGPU {
		b.engineBreaker = b.recordFailure(b.engineBreaker, t, f)
		return
	}
	for _, grant := range a.Grants {
		if f.of(grant.GPU) {
			g := b.byID[grant.GPU]
			g.Breaker = b.recordFailure(g.Breaker, t, f)
			g.changed()
		}
	}
}

// of reports whether a GPU of the attempt is at fault.
func (f *Fault) of(id GPUID) bool {
	return f.Scope == ScopeGPU && (len(f.GPUs) == 0 || slices.Contains(f.GPUs, id))
}

// recordFailure adds a failed start to a breaker.
func (b *breakers) recordFailure(i *breaker, t *Task, f Fault) *breaker {
	if i == nil {
		i = &breaker{Since: b.now}
	}
	i.Fault, i.Failures = f, i.Failures+1
	i.failed(t.ID)
	switch {
	case i.paused() && i.Testing == t.ID:
		i.Wait, i.Testing = min(2*i.Wait, lastTest), 0
		b.probeAt(i, b.now.Add(i.Wait))
	case !i.paused() && len(i.Tasks) >= sickTasks:
		i.Wait = b.nextProbe()
		b.probeAt(i, b.now.Add(i.Wait))
	}
	b.capacityChanged()
	b.dirty = true
	return i
}

// failed makes a task the latest whose start has failed.
func (i *breaker) failed(id TaskID) {
	i.Tasks = append(slices.DeleteFunc(i.Tasks, func(o TaskID) bool { return o == id }), id)
	i.Tasks = i.Tasks[max(0, len(i.Tasks)-sickNames):]
}

func (l *ledger) probeAt(i *breaker, at units.Instant) {
	i.Test = at
	l.at(at, timer{})
}

// probeTargets records a launch on a paused engine or GPU as its probe. If the probe
// takes long, for example to pull its image, the next one may start after lastTest.
func (b *breakers) probeTargets(i *breaker, id TaskID) {
	if i.paused() {
		i.Testing = id
		b.probeAt(i, b.now.Add(lastTest))
		b.capacityChanged()
	}
}

// unprobed handles the end of an attempt whose start was not seen. If it was a probe and
// was inconclusive, because it was stopped or failed for another reason, another probe
// may follow.
func (b *breakers) unprobed(t *Task, a *Attempt) {
	switch a.Class {
	case ExitInfrastructure, ExitCannotStart, ExitStopped:
	default:
		b.startSucceeded(t, a) // its program has run
		return
	}
	b.inconclusive(t.ID)
}

// inconclusive lets another probe follow one that showed nothing.
func (b *breakers) inconclusive(id TaskID) {
	for _, i := range b.all() {
		if i.Testing == id {
			b.probeSoon(i)
		}
	}
}

func (b *breakers) probeSoon(i *breaker) {
	i.Testing = 0
	b.probeAt(i, b.now)
	b.capacityChanged()
	b.dirty = true
}

// all returns the breakers of the engine, the GPUs and the full namespaces, in
// order.
func (b *breakers) all() []*breaker {
	var all []*breaker
	if b.engineBreaker != nil {
		all = append(all, b.engineBreaker)
	}
	for _, g := range b.gpus {
		if g.Breaker != nil {
			all = append(all, g.Breaker)
		}
	}
	return append(all, b.namespaceBreakers...)
}

// startSucceeded closes the breakers of the engine and of the GPUs on which a task has
// started.
func (b *breakers) startSucceeded(t *Task, a *Attempt) {
	t.StartFailures, t.StartFailuresWhileOthersStart, t.From = 0, 0, place{}
	b.taskStarted(t.ID)
	if i := b.fullAt(t.Namespace); i != nil && i.Testing == t.ID {
		b.opens(i)
	}
	b.engineBreaker = b.closeBreakers(b.engineBreaker, t.ID)
	for _, grant := range a.Grants {
		g := b.byID[grant.GPU]
		g.Breaker = b.closeBreakers(g.Breaker, t.ID)
	}
}

// closeBreakers closes a breaker, because a task has started. A failed start counts
// against each task that could not start meanwhile.
func (b *breakers) closeBreakers(i *breaker, started TaskID) *breaker {
	if i == nil {
		return nil
	}
	for _, id := range i.Tasks {
		if t := b.tasks[id]; t != nil && id != started {
			t.StartFailuresWhileOthersStart++
		}
	}
	if i.paused() {
		b.letGo(i)
	}
	b.capacityChanged()
	b.dirty = true
	return nil
}

// letGo ends the back-off of the tasks whose starts have failed.
func (l *ledger) letGo(i *breaker) {
	for _, id := range i.Tasks {
		if t := l.tasks[id]; t != nil && t.StartFailures > 0 {
			t.NotBefore = 0
		}
	}
}

// probeAgain allows a probe of everything unhealthy at once, because the engine or the
// daemon has restarted.
func (b *breakers) probeAgain() {
	for _, i := range b.all() {
		b.letGo(i)
		if i.paused() {
			i.Wait = b.nextProbe()
			b.probeAt(i, b.now)
		}
	}
	if b.canary.Next > 0 {
		b.canaryAt(b.now)
	}
	b.capacityChanged()
}

// noteStartFailure returns a task to its place after a start that failed through no fault
// of its own. The task fails only if others could start repeatedly where it could not.
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
	if !s.breakers.engineBreaker.paused() && ev.Fault.Scope != ScopeNamespace { // a full namespace sets NotBefore elsewhere
		t.NotBefore = s.now.Add(s.startBackoff(t))
	}
	from := t.From
	if from.Phase == "" { // launched by a daemon that did not record it
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

// mergeStartFailures keeps only the last one of consecutive failed starts.
func (t *Task) mergeStartFailures() {
	n := len(t.Attempts)
	if n < 2 || t.Attempts[n-2].Fault == nil || t.Attempts[n-2].Started != 0 {
		return
	}
	last := t.Attempts[n-1]
	last.Starts = last.starts() + t.Attempts[n-2].starts()
	t.Attempts = append(t.Attempts[:n-2:n-2], last)
}

// starts returns the number of launches that an entry stands for.
func (a *Attempt) starts() int { return max(a.Starts, 1) }

// rescheduleProbe returns the earliest instant at which a shut GPU may be probed.
func (l *ledger) rescheduleProbe() units.Instant {
	next := units.Never
	for _, g := range l.gpus {
		if g.Breaker.shut(l.now) {
			next = min(next, g.Breaker.Test)
		}
	}
	return next
}
