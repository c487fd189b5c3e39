package recovery

import (
	"slices"

	"carma/mapper/model"
)

// recoverNotAtFault runs a task again, on another GPU if possible, after a failure that
// was not its fault. It waits before that, longer each time ([attempt.Attempts.Backoff]).
func (rc *Recovery) recoverNotAtFault(t *model.Task, a *model.Attempt, ev model.Exited) {
	a.NotAtFault = true
	t.NotAtFault++
	if t.NotAtFault > rc.Options().BlamelessRetries {
		rc.lifecycle.Finish(t, model.Failed, ev.Code, model.Reason{Code: model.ReasonTooOften, Count: t.NotAtFault}.WithCause(outcome(ev)))
		return
	}
	if ev.Class == model.ExitInfrastructure {
		for _, grant := range a.Grants {
			if !slices.Contains(t.Avoid, grant.GPU) {
				t.Avoid = append(t.Avoid, grant.GPU)
			}
		}
	}
	if ev.Class == model.ExitInfrastructure || ev.Class == model.ExitMPSFault { // what failed needs time to recover
		t.NotBefore = rc.Now().Add(rc.attempts.Backoff(t.NotAtFault))
	}
	rc.lifecycle.Requeue(t, model.Recovering, outcome(ev))
}

// startFailed returns a task to its place after a start that failed through no fault
// of its own. The task fails only if others could start repeatedly where it could not.
func (rc *Recovery) startFailed(t *model.Task, a *model.Attempt, ev model.Exited) {
	a.NotAtFault = true
	grants := a.Grants
	t.StartFailures++
	t.MergeStartFailures()
	unknown := ev.Fault.Scope == model.ScopeUnknown
	switch {
	case t.StartFailuresWhileOthersStart <= rc.Options().BlamelessRetries:
	case unknown:
		t.Last().NotAtFault, t.Last().Class = false, model.ExitCannotStart
		rc.lifecycle.Finish(t, model.Failed, ev.Code, model.Reason{Code: model.ReasonNeverStarted, Count: t.StartFailures}.WithCause(outcome(ev)))
		return
	default:
		rc.lifecycle.Finish(t, model.Failed, ev.Code, model.Reason{Code: model.ReasonOthersStart, Count: t.StartFailuresWhileOthersStart}.WithCause(outcome(ev)))
		return
	}
	for _, grant := range grants {
		if ev.Fault.Concerns(grant.GPU) && !slices.Contains(t.Avoid, grant.GPU) {
			t.Avoid = append(t.Avoid, grant.GPU)
		}
	}
	if !rc.breakers.IsEnginePaused() && ev.Fault.Scope != model.ScopeNamespace { // a full namespace sets NotBefore elsewhere
		t.NotBefore = rc.Now().Add(rc.StartBackoff(t))
	}
	from := t.From
	if from.Phase == "" { // launched by a daemon that did not record it
		from = model.QueuePlace{Phase: model.Queued, QueuedAt: t.QueuedAt, BlockedAt: 0}
	}
	why := model.Reason{Code: model.ReasonUnstarted, Text: ev.Message}
	if unknown && t.StartFailuresWhileOthersStart > 0 {
		why.Limit = rc.Options().BlamelessRetries + 1 - t.StartFailuresWhileOthersStart
	}
	if ev.Fault.Scope == model.ScopeNamespace {
		why = model.Reason{Code: model.ReasonNamespaceFull, Name: t.Namespace, Text: ev.Fault.Cause, Remedy: ev.Fault.Remedy}
	}
	rc.lifecycle.RequeueAt(t, from.Phase, from.QueuedAt, why)
	t.BlockedAt = from.BlockedAt
}
