package mapper

import (
	"slices"

	"carma/mapper/ledger"
	"carma/mapper/model"
)

// An engine or a GPU on which nothing starts costs no task an attempt: such a failed
// start counts against the engine or the GPU, and the task returns to its place in the
// queue. After failed starts of several tasks the breaker opens and launching pauses
// there. From then on one probe task at a time is launched, at growing intervals, and the
// first container that starts closes the breaker.
//
// Other tasks show whether a task is itself at fault: a failed start counts against a
// task as soon as another one has started at the same place.

// openBreaker counts a failed start against the engine or GPUs.
func (b *breakers) openBreaker(t *model.Task, a *model.Attempt, f model.Fault) {
	if f.Scope == model.ScopeNamespace {
		b.fills(t, f)
		b.inconclusive(t.ID)
		return
	}
	if i := b.fullAt(t.Namespace); i != nil && i.Testing == t.ID {
		b.probeSoon(i)
	}
	if f.Scope == model.ScopeUnknown {
		b.complains(t, f)
		return
	}
	if f.Scope != model.ScopeGPU {
		b.engineBreaker = b.recordFailure(b.engineBreaker, t, f)
		return
	}
	for _, grant := range a.Grants {
		if f.Concerns(grant.GPU) {
			g := b.GPU(grant.GPU)
			g.Breaker = b.recordFailure(g.Breaker, t, f)
			g.Changed()
		}
	}
}

// recordFailure adds a failed start to a breaker.
func (b *breakers) recordFailure(i *model.Breaker, t *model.Task, f model.Fault) *model.Breaker {
	if i == nil {
		i = &model.Breaker{Since: b.Now()}
	}
	i.Fault, i.Failures = f, i.Failures+1
	i.AddFailed(t.ID)
	switch {
	case i.Paused() && i.Testing == t.ID:
		i.Wait, i.Testing = min(2*i.Wait, ledger.MaxProbeInterval), 0
		b.ProbeAt(i, b.Now().Add(i.Wait))
	case !i.Paused() && len(i.Tasks) >= sickTasks:
		i.Wait = b.NextProbe()
		b.ProbeAt(i, b.Now().Add(i.Wait))
	}
	b.CapacityChanged()
	b.MarkDirty()
	return i
}

// probeTargets records a launch on a paused engine or GPU as its probe. If the probe
// takes long, for example to pull its image, the next one may start after [ledger.MaxProbeInterval].
func (b *breakers) probeTargets(i *model.Breaker, id model.TaskID) {
	if i.Paused() {
		i.Testing = id
		b.ProbeAt(i, b.Now().Add(ledger.MaxProbeInterval))
		b.CapacityChanged()
	}
}

// unprobed handles the end of an attempt whose start was not seen. If it was a probe and
// was inconclusive, because it was stopped or failed for another reason, another probe
// may follow.
func (b *breakers) unprobed(t *model.Task, a *model.Attempt) {
	switch a.Class {
	case model.ExitInfrastructure, model.ExitCannotStart, model.ExitStopped:
	default:
		b.startSucceeded(t, a) // its program has run
		return
	}
	b.inconclusive(t.ID)
}

// inconclusive lets another probe follow one that showed nothing.
func (b *breakers) inconclusive(id model.TaskID) {
	for _, i := range b.all() {
		if i.Testing == id {
			b.probeSoon(i)
		}
	}
}

func (b *breakers) probeSoon(i *model.Breaker) {
	i.Testing = 0
	b.ProbeAt(i, b.Now())
	b.CapacityChanged()
	b.MarkDirty()
}

// all returns the breakers of the engine, the GPUs and the full namespaces, in
// order.
func (b *breakers) all() []*model.Breaker {
	var all []*model.Breaker
	if b.engineBreaker != nil {
		all = append(all, b.engineBreaker)
	}
	for _, g := range b.GPUList() {
		if g.Breaker != nil {
			all = append(all, g.Breaker)
		}
	}
	return append(all, b.namespaceBreakers...)
}

// startSucceeded closes the breakers of the engine and of the GPUs on which a task has
// started.
func (b *breakers) startSucceeded(t *model.Task, a *model.Attempt) {
	t.StartFailures, t.StartFailuresWhileOthersStart, t.From = 0, 0, model.QueuePlace{}
	b.taskStarted(t.ID)
	if i := b.fullAt(t.Namespace); i != nil && i.Testing == t.ID {
		b.opens(i)
	}
	b.engineBreaker = b.closeBreakers(b.engineBreaker, t.ID)
	for _, grant := range a.Grants {
		g := b.GPU(grant.GPU)
		g.Breaker = b.closeBreakers(g.Breaker, t.ID)
	}
}

// closeBreakers closes a breaker, because a task has started. A failed start counts
// against each task that could not start meanwhile.
func (b *breakers) closeBreakers(i *model.Breaker, started model.TaskID) *model.Breaker {
	if i == nil {
		return nil
	}
	for _, id := range i.Tasks {
		if t := b.TaskByID(id); t != nil && id != started {
			t.StartFailuresWhileOthersStart++
		}
	}
	if i.Paused() {
		b.letGo(i)
	}
	b.CapacityChanged()
	b.MarkDirty()
	return nil
}

// letGo ends the back-off of the tasks whose starts have failed.
func (b *breakers) letGo(i *model.Breaker) {
	for _, id := range i.Tasks {
		if t := b.TaskByID(id); t != nil && t.StartFailures > 0 {
			t.NotBefore = 0
		}
	}
}

// probeAgain allows a probe of everything unhealthy at once, because the engine or the
// daemon has restarted.
func (b *breakers) probeAgain() {
	for _, i := range b.all() {
		b.letGo(i)
		if i.Paused() {
			i.Wait = b.NextProbe()
			b.ProbeAt(i, b.Now())
		}
	}
	if b.canary.Next > 0 {
		b.canaryAt(b.Now())
	}
	b.CapacityChanged()
}

// noteStartFailure returns a task to its place after a start that failed through no fault
// of its own. The task fails only if others could start repeatedly where it could not.
func (s *State) noteStartFailure(t *model.Task, a *model.Attempt, ev model.Exited) {
	a.NotAtFault = true
	grants := a.Grants
	t.StartFailures++
	t.MergeStartFailures()
	unknown := ev.Fault.Scope == model.ScopeUnknown
	switch {
	case t.StartFailuresWhileOthersStart <= s.Ledger.Options().BlamelessRetries:
	case unknown:
		t.Last().NotAtFault, t.Last().Class = false, model.ExitCannotStart
		s.finish(t, model.Failed, ev.Code, model.Reason{Code: model.ReasonNeverStarted, Count: t.StartFailures}.WithCause(outcome(ev)))
		return
	default:
		s.finish(t, model.Failed, ev.Code, model.Reason{Code: model.ReasonOthersStart, Count: t.StartFailuresWhileOthersStart}.WithCause(outcome(ev)))
		return
	}
	for _, grant := range grants {
		if ev.Fault.Concerns(grant.GPU) && !slices.Contains(t.Avoid, grant.GPU) {
			t.Avoid = append(t.Avoid, grant.GPU)
		}
	}
	if !s.breakers.engineBreaker.Paused() && ev.Fault.Scope != model.ScopeNamespace { // a full namespace sets NotBefore elsewhere
		t.NotBefore = s.Now().Add(s.StartBackoff(t))
	}
	from := t.From
	if from.Phase == "" { // launched by a daemon that did not record it
		from = model.QueuePlace{Phase: model.Queued, QueuedAt: t.QueuedAt, BlockedAt: 0}
	}
	t.Reason = model.Reason{Code: model.ReasonUnstarted, Text: ev.Message}
	if unknown && t.StartFailuresWhileOthersStart > 0 {
		t.Reason.Limit = s.Ledger.Options().BlamelessRetries + 1 - t.StartFailuresWhileOthersStart
	}
	if ev.Fault.Scope == model.ScopeNamespace {
		t.Reason = model.Reason{Code: model.ReasonNamespaceFull, Name: t.Namespace, Text: ev.Fault.Cause, Remedy: ev.Fault.Remedy}
	}
	switch fate := s.Recorded().End(t.ID).(type) {
	case model.Finish:
		s.meet(t, fate)
		return
	case model.Requeue:
		t.NextGrant, t.NextExclusive, t.Reason = fate.Need, fate.Alone, fate.Reason
	}
	t.Last().Reason = t.Reason
	s.Decide(model.Requeue{Task: t.ID, Need: t.NextGrant, Alone: t.NextExclusive, Phase: from.Phase, Reason: t.Reason})
	s.enqueueAt(t, from.Phase, from.QueuedAt)
	t.BlockedAt = from.BlockedAt
}

const (
	// sickTasks is the number of tasks with consecutive failed starts after which
	// launching pauses.
	sickTasks = 3
	// sickStarts is the number of consecutive failed starts, also of one task, after
	// which an engine or GPU is reported as unhealthy.
	sickStarts = 3
)
