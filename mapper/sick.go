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

// Scope is the place of a fault that kept a container from starting.
type Scope string

// The scopes, beside [ScopeNamespace].
const (
	ScopeEngine Scope = "engine" // the container engine, or what it needs of the machine
	ScopeGPU    Scope = "gpu"    // the GPUs it was to get, or their driver
)

// Fault is why an attempt could not start through no fault of the task.
type Fault struct {
	Scope Scope `json:"scope"`
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

// illness is a row of failed starts on the engine or on a GPU, or of refusals by a
// namespace.
type illness struct {
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

// firstTest is the time between the pause and the first test launch; it doubles
// with each that fails. 5 s, as the back-off is 10 s.
func (s *State) firstTest() time.Duration {
	return min(max(s.opt.Backoff/2, time.Millisecond), lastTest)
}

// paused reports whether only test launches are made.
func (i *illness) paused() bool { return i != nil && i.Wait > 0 }

// shut reports whether nothing is launched now.
func (i *illness) shut(now units.Instant) bool { return i.paused() && now < i.Test }

func (i *illness) clone() *illness {
	if i == nil {
		return nil
	}
	c := *i
	c.Tasks = slices.Clone(i.Tasks)
	return &c
}

// sickens counts a failed start against the engine or GPUs.
func (s *State) sickens(t *Task, a *Attempt, f Fault) {
	if f.Scope == ScopeNamespace {
		s.fills(t, f)
		s.inconclusive(t.ID)
		return
	}
	if i := s.fullAt(t.Namespace); i != nil && i.Testing == t.ID {
		s.retestSoon(i)
	}
	if f.Scope == ScopeUnknown {
		s.complains(t, f)
		return
	}
	if f.Scope != ScopeGPU {
		s.sick = s.worse(s.sick, t, f)
		return
	}
	for _, grant := range a.Grants {
		if f.of(grant.GPU) {
			g := s.byID[grant.GPU]
			g.Sick = s.worse(g.Sick, t, f)
			g.mark()
		}
	}
}

// of reports whether a GPU of the attempt is at fault.
func (f *Fault) of(id GPUID) bool {
	return f.Scope == ScopeGPU && (len(f.GPUs) == 0 || slices.Contains(f.GPUs, id))
}

// worse adds a failed start to an illness.
func (s *State) worse(i *illness, t *Task, f Fault) *illness {
	if i == nil {
		i = &illness{Since: s.now}
	}
	i.Fault, i.Failures = f, i.Failures+1
	i.failed(t.ID)
	switch {
	case i.paused() && i.Testing == t.ID:
		i.Wait, i.Testing = min(2*i.Wait, lastTest), 0
		s.testAt(i, s.now.Add(i.Wait))
	case !i.paused() && len(i.Tasks) >= sickTasks:
		i.Wait = s.firstTest()
		s.testAt(i, s.now.Add(i.Wait))
	}
	s.notes.ceilings, s.dirty = [2]ceiling{}, true
	return i
}

// failed notes a task as the latest whose start has failed.
func (i *illness) failed(id TaskID) {
	i.Tasks = append(slices.DeleteFunc(i.Tasks, func(o TaskID) bool { return o == id }), id)
	i.Tasks = i.Tasks[max(0, len(i.Tasks)-sickNames):]
}

func (s *State) testAt(i *illness, at units.Instant) {
	i.Test = at
	s.at(at, deadline{})
}

// tests notes a launch on a paused engine or GPU: it is the test. If it takes
// long, for its image say, the next test does not wait for it for ever.
func (s *State) tests(i *illness, id TaskID) {
	if i.paused() {
		i.Testing = id
		s.testAt(i, s.now.Add(lastTest))
		s.notes.ceilings = [2]ceiling{}
	}
}

// untested follows the end of an attempt whose start was not seen. If it was the
// test and told nothing, because it was stopped or failed by itself, another test
// may follow.
func (s *State) untested(t *Task, a *Attempt) {
	switch a.Class {
	case ExitInfrastructure, ExitCannotStart, ExitStopped:
	default:
		s.recovers(t, a) // its program has run
		return
	}
	s.inconclusive(t.ID)
}

// inconclusive follows that a test has told nothing.
func (s *State) inconclusive(id TaskID) {
	for _, i := range s.illnesses() {
		if i.Testing == id {
			s.retestSoon(i)
		}
	}
}

func (s *State) retestSoon(i *illness) {
	i.Testing = 0
	s.testAt(i, s.now)
	s.notes.ceilings, s.dirty = [2]ceiling{}, true
}

// illnesses returns the illnesses of the engine and the GPUs, and the full namespaces,
// in order.
func (s *State) illnesses() []*illness {
	var all []*illness
	if s.sick != nil {
		all = append(all, s.sick)
	}
	for _, g := range s.gpus {
		if g.Sick != nil {
			all = append(all, g.Sick)
		}
	}
	return append(all, s.filled...)
}

// recovers ends the illnesses of the engine and of the GPUs on which a task
// has started.
func (s *State) recovers(t *Task, a *Attempt) {
	t.Unstarted, t.Strikes, t.From = 0, 0, place{}
	s.taskStarted(t.ID)
	if i := s.fullAt(t.Namespace); i != nil && i.Testing == t.ID {
		s.opens(i)
	}
	s.sick = s.healed(s.sick, t.ID)
	for _, grant := range a.Grants {
		g := s.byID[grant.GPU]
		g.Sick = s.healed(g.Sick, t.ID)
	}
}

// healed ends an illness, because a task has started. Tasks that could not start
// meanwhile get one strike each.
func (s *State) healed(i *illness, started TaskID) *illness {
	if i == nil {
		return nil
	}
	for _, id := range i.Tasks {
		if t := s.tasks[id]; t != nil && id != started {
			t.Strikes++
		}
	}
	if i.paused() {
		s.letGo(i)
	}
	s.notes.ceilings, s.dirty = [2]ceiling{}, true
	return nil
}

// letGo ends the back-off of the tasks whose starts have failed.
func (s *State) letGo(i *illness) {
	for _, id := range i.Tasks {
		if t := s.tasks[id]; t != nil && t.Unstarted > 0 {
			t.NotBefore = 0
		}
	}
}

// retest lets everything sick be tried at once, because the engine or the daemon
// has begun anew.
func (s *State) retest() {
	for _, i := range s.illnesses() {
		s.letGo(i)
		if i.paused() {
			i.Wait = s.firstTest()
			s.testAt(i, s.now)
		}
	}
	if s.canary.Next > 0 {
		s.canaryAt(s.now)
	}
	s.notes.ceilings = [2]ceiling{}
}

// unstarted puts a task back in its place after a start that failed through no
// fault of its own. The task fails only if others could start again and again
// where it could not.
func (s *State) unstarted(t *Task, a *Attempt, ev Exited) {
	a.Blameless = true
	grants := a.Grants
	t.Unstarted++
	t.mergeUnstarted()
	unknown := ev.Fault.Scope == ScopeUnknown
	switch {
	case t.Strikes <= s.opt.BlamelessRetries:
	case unknown:
		t.Last().Blameless, t.Last().Class = false, ExitCannotStart
		s.finish(t, Failed, ev.Code, Reason{Code: ReasonNeverStarted, Count: t.Unstarted}.because(outcome(ev)))
		return
	default:
		s.finish(t, Failed, ev.Code, Reason{Code: ReasonOthersStart, Count: t.Strikes}.because(outcome(ev)))
		return
	}
	for _, grant := range grants {
		if ev.Fault.of(grant.GPU) && !slices.Contains(t.Avoid, grant.GPU) {
			t.Avoid = append(t.Avoid, grant.GPU)
		}
	}
	if !s.sick.paused() && ev.Fault.Scope != ScopeNamespace { // that has set it
		t.NotBefore = s.now.Add(s.startBackoff(t))
	}
	from := t.From
	if from.Phase == "" { // a daemon that did not note it has launched it
		from = place{Queued, t.QueuedAt, 0}
	}
	t.Reason = Reason{Code: ReasonUnstarted, Text: ev.Message}
	if unknown && t.Strikes > 0 {
		t.Reason.Limit = s.opt.BlamelessRetries + 1 - t.Strikes
	}
	if ev.Fault.Scope == ScopeNamespace {
		t.Reason = Reason{Code: ReasonNamespaceFull, Name: t.Namespace, Text: ev.Fault.Cause, Remedy: ev.Fault.Remedy}
	}
	switch fate := s.script.fate(t.ID).(type) {
	case Finish:
		s.meet(t, fate)
		return
	case Requeue:
		t.Need, t.Alone, t.Reason = fate.Need, fate.Alone, fate.Reason
	}
	t.Last().Reason = t.Reason
	s.decide(Requeue{Task: t.ID, Need: t.Need, Alone: t.Alone, Phase: from.Phase, Reason: t.Reason})
	s.enqueueAt(t, from.Phase, from.QueuedAt)
	t.BlockedAt = from.BlockedAt
}

// mergeUnstarted keeps one entry for a row of failed starts, that of the last.
func (t *Task) mergeUnstarted() {
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

// nextTest is the first instant at which a GPU that is shut is open for a test.
func (s *State) nextTest() units.Instant {
	next := units.Never
	for _, g := range s.gpus {
		if g.Sick.shut(s.now) {
			next = min(next, g.Sick.Test)
		}
	}
	return next
}
