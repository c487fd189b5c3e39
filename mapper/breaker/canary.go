package breaker

import (
	"slices"
	"time"

	"carma/internal/units"
	"carma/mapper/ledger"
	"carma/mapper/model"
)

// complaintUsers is the number of users whose tasks must fail to start for an unknown
// reason before that counts against the engine.
const complaintUsers = 2

// complaints are consecutive failed starts for an unknown reason, not yet explained.
type complaints struct {
	Fault    model.Fault   `json:"fault"` // the latest
	Since    units.Instant `json:"since"`
	Failures int           `json:"failures"`
	// Tasks are the unfinished tasks whose starts failed, the latest last.
	Tasks []model.TaskID `json:"tasks"`
}

func (c *complaints) clone() *complaints {
	if c == nil {
		return nil
	}
	n := *c
	n.Tasks = slices.Clone(c.Tasks)
	return &n
}

// canary is the schedule of the canary.
type canary struct {
	// Next is the instant of the next start, or 0 if none is needed.
	Next units.Instant `json:"next,omitempty"`
	// Last is the instant at which it last ended, or 0 if it never ran.
	Last units.Instant `json:"last,omitempty"`
	// Wait is the time between two canaries that fail, or 0 if the last one did not.
	Wait time.Duration `json:"wait,omitempty"`
}

// failing reports whether the last canary failed.
func (c *canary) failing() bool { return c.Wait > 0 }

// CanaryDue reports whether a canary must be started now. It stays true until
// [model.CanaryEnded] reports the outcome, or the canary is no longer needed.
func (b *Breakers) CanaryDue() bool {
	return b.engineDown.Code == "" && b.canary.Next > 0 && b.canary.Next <= b.Now()
}

// askCanary asks for a canary, but not sooner than [ledger.Ledger.NextProbe] after the last one.
func (b *Breakers) askCanary() {
	if b.canary.Next > 0 {
		return
	}
	next := b.Now()
	if b.canary.Last > 0 {
		next = max(next, b.canary.Last.Add(b.NextProbe()))
	}
	b.canaryAt(next)
}

func (b *Breakers) canaryAt(at units.Instant) {
	b.canary.Next = max(at, 1)
	b.SetTimer(b.canary.Next, ledger.Timer{})
}

// complains counts a start that failed for an unknown reason.
func (b *Breakers) complains(t *model.Task, f model.Fault) {
	b.askCanary()
	if b.engineBreaker.Paused() || b.engineBreaker != nil && b.engineBreaker.Unknown {
		cause := b.engineBreaker.Fault
		if b.engineBreaker = b.recordFailure(b.engineBreaker, t, f); b.canary.failing() {
			b.engineBreaker.Fault = cause // the canary's fault is more specific than a task's
		}
		return
	}
	if b.complaints == nil {
		b.complaints = &complaints{Since: b.Now()}
	}
	c := b.complaints
	c.Fault, c.Failures = f, c.Failures+1
	c.Tasks = append(slices.DeleteFunc(c.Tasks, func(id model.TaskID) bool { return id == t.ID }), t.ID)
	c.Tasks = c.Tasks[max(0, len(c.Tasks)-model.MaxFailedTasks):]
	if b.complainingUsers() >= complaintUsers {
		b.blameEngine(f)
	}
}

// complainingUsers counts the users of the tasks in complaints. A task does not count if it has
// failed before at a place where other containers started.
func (b *Breakers) complainingUsers() int {
	var users []string
	for _, id := range b.complaints.Tasks {
		if t := b.TaskByID(id); t != nil && t.StartFailuresWhileOthersStart == 0 && !slices.Contains(users, t.User) {
			users = append(users, t.User)
		}
	}
	return len(users)
}

// blameEngine counts all complaints as failures of the engine.
func (b *Breakers) blameEngine(f model.Fault) {
	if b.engineBreaker == nil {
		b.engineBreaker = &model.Breaker{Since: b.Now(), Unknown: true}
	}
	i := b.engineBreaker
	i.Fault = f
	if c := b.complaints; c != nil {
		i.Since, i.Failures = min(i.Since, c.Since), i.Failures+c.Failures
		for _, id := range c.Tasks {
			i.AddFailed(id)
		}
	}
	b.complaints = nil
	if !i.Paused() && (len(i.Tasks) >= SickTasks || b.canary.failing()) {
		i.Wait = b.NextProbe()
		b.ProbeAt(i, b.Now().Add(i.Wait))
	}
	b.CapacityChanged()
	b.MarkDirty()
}

// CanaryEnded resolves the complaints by the outcome of the canary.
func (b *Breakers) CanaryEnded(ev model.CanaryEnded) {
	before := b.canary
	b.canary = canary{Last: max(b.Now(), 1)}
	switch {
	case b.complaints == nil && b.engineBreaker == nil: // a task has started meanwhile, or the tasks have ended
	case ev.Outcome == model.CanaryFailed:
		b.canary.Wait = max(b.NextProbe(), min(2*before.Wait, ledger.MaxProbeInterval))
		b.canaryAt(b.Now().Add(b.canary.Wait))
		f := model.Fault{}
		if ev.Fault != nil {
			f = *ev.Fault
		}
		f.Scope = model.ScopeEngine
		b.blameEngine(f)
	case ev.Outcome == model.CanaryStarted:
		b.blameTasks()
		if before.failing() && b.engineBreaker != nil { // the engine was at fault, and works again
			b.letGo(b.engineBreaker)
			b.closeBreaker()
		} else if b.engineBreaker != nil && b.engineBreaker.Unknown {
			b.countFailedStarts(b.engineBreaker.Tasks)
			b.closeBreaker()
		}
		b.closeIfGone()
	default:
		b.blameTasks()
		b.closeIfGone()
	}
}

// closeBreaker lets all tasks be launched again.
func (b *Breakers) closeBreaker() {
	b.engineBreaker = nil
	b.CapacityChanged()
	b.MarkDirty()
}

// closeIfGone closes the breaker if all tasks whose starts failed have ended.
func (b *Breakers) closeIfGone() {
	if b.engineBreaker != nil && !b.complaining(b.engineBreaker) {
		b.closeBreaker()
	}
}

// taskStarted resolves the complaints of other tasks, because a task has started.
func (b *Breakers) taskStarted(id model.TaskID) {
	if c := b.complaints; c != nil {
		c.Tasks = slices.DeleteFunc(c.Tasks, func(o model.TaskID) bool { return o == id })
	}
	b.blameTasks()
	b.canary = canary{Last: b.canary.Last}
}

// blameTasks counts all complaints as failures of the tasks.
func (b *Breakers) blameTasks() {
	if b.complaints != nil {
		b.countFailedStarts(b.complaints.Tasks)
		b.complaints = nil
	}
}

// countFailedStarts counts a failed start against each task, because another container has
// started or because no other user's task failed. The tasks are tried again later.
func (b *Breakers) countFailedStarts(tasks []model.TaskID) {
	for _, id := range tasks {
		t := b.TaskByID(id)
		if t == nil {
			continue
		}
		t.StartFailuresWhileOthersStart++
		if t.Waiting() && t.StartFailures > 0 && t.NotBefore <= b.Now() {
			t.NotBefore = b.Now().Add(b.StartBackoff(t))
			b.SetTimer(t.NotBefore, ledger.Timer{})
			b.MarkDirty() // tasks behind it may be within the look-ahead now
		}
	}
}

// TaskEnded withdraws the complaint of a task that has ended. If no complaint is
// left, the engine is no longer at fault, unless the canary fails.
func (b *Breakers) TaskEnded(id model.TaskID) {
	if c := b.complaints; c != nil {
		c.Tasks = slices.DeleteFunc(c.Tasks, func(o model.TaskID) bool { return o == id })
		if len(c.Tasks) == 0 {
			b.complaints = nil
		}
	}
	if b.canary.failing() {
		return
	}
	if b.engineBreaker != nil && b.engineBreaker.Unknown {
		b.closeIfGone()
	}
	switch {
	case b.engineBreaker.Paused() && !b.complaining(b.engineBreaker): // the cause was known; the canary shows whether it persists
		b.canary.Next = max(b.Now(), 1) // no timer: it is due now
	case b.complaints == nil && (b.engineBreaker == nil || !b.engineBreaker.Unknown):
		b.canary.Next = 0
	}
}

// complaining reports whether any task whose start failed is unfinished.
func (b *Breakers) complaining(i *model.Breaker) bool {
	return slices.ContainsFunc(i.Tasks, func(id model.TaskID) bool { return b.TaskByID(id) != nil })
}
