package explain

import (
	"carma/internal/units"
	"carma/mapper/model"
	"carma/mapper/queue"
)

// Why explains the state of a task.
type Why struct {
	Task     model.TaskID
	Phase    model.Phase
	Position int // in the order of all queues, from 1, or 0 if in none
	Recovery bool
	// Fits are the GPUs that would take it now, Rejected all others with the reason, both
	// in index order. They are set for a waiting task only.
	Fits     []model.GPUID
	Rejected []model.Rejection
	// Binding is the decisive reason. Rule is set if the reason does not concern a GPU:
	// RuleQuota, RuleFairShare, RuleAfter, RuleDelay, RuleGroup.
	Binding model.Reason
	Rule    model.Rule
	// Nearest is, for ReasonTurnedDown, the rejection by the GPU that is closest to being
	// usable. Turn says who goes first, for RuleFairShare.
	Nearest *model.Rejection
	Turn    *queue.Turn
	// Away says why and for how long it is suspended, if it waits to resume.
	Away model.Reason
}

// Launching says what keeps the scheduler from launching any task at present.
type Launching struct {
	Paused    model.Reason  // why launching is paused, or the zero Reason
	NotBefore units.Instant // no launch before this (option Interval)
	InFlight  int           // launches in flight, if they have reached the limit, else 0
	Again     units.Instant // when the queues are scheduled again
}

// Why explains the state of an unfinished task; ok is false for any other. now says
// what holds all tasks.
func (ex *Explainer) Why(id model.TaskID, now Launching) (Why, bool) {
	t := ex.TaskByID(id)
	if t == nil {
		return Why{}, false
	}
	w := Why{Task: id, Phase: t.Phase, Recovery: t.GoesFirst()}
	if !t.Waiting() {
		w.Binding = t.Reason
		if fills := ex.reserve.BackfillReason(t); fills.Code != "" {
			w.Binding = fills
		}
		if t.Phase == model.Suspending && t.Suspension.Preemptor() != 0 {
			w.Binding = ex.suspendedFor(t)
		}
		if rule, reason := ex.queue.HeldBy(t); rule != "" {
			w.Rule, w.Binding = rule, reason
		}
		return w, true
	}
	w.Position = ex.queue.PositionOf(t)
	if t.Phase == model.Suspended && t.Suspension.Preemptor() != 0 {
		w.Away = ex.suspendedFor(t)
	}
	for _, g := range ex.GPUList() {
		if t.GPUs == 0 {
			break
		}
		if rule := ex.placer.Reject(t, g); rule != "" {
			w.Rejected = append(w.Rejected, ex.placer.Rejection(t, g, rule))
		} else {
			w.Fits = append(w.Fits, g.ID)
		}
	}
	ex.bindingReason(&w, t, now)
	return w, true
}

// bindingReason picks the decisive reason: first what holds all tasks, then what holds
// this task regardless of GPUs, then the GPUs.
func (ex *Explainer) bindingReason(w *Why, t *model.Task, now Launching) {
	over := ex.users.OverQuota(t)
	switch {
	case ex.breakers.IsEngineDown():
		w.Binding = ex.breakers.EngineDown()
	case now.Paused.Code != "":
		w.Binding = now.Paused
	case ex.breakers.IsEnginePaused():
		w.Binding = ex.breakers.EngineReason()
	case len(ex.GPUList()) == 0 && t.GPUs > 0:
		w.Binding.Code = model.ReasonNoGPU
	case ex.breakers.AwaitsNamespace(t):
		w.Binding = ex.breakers.NamespaceReason(t)
	case t.NotBefore > ex.Now():
		w.Binding = model.Reason{Code: model.ReasonBackOff, Span: t.NotBefore.Sub(ex.Now())}.WithCause(t.Reason)
	case over.Code != "":
		w.Binding, w.Rule = over, model.RuleQuota
	case ex.IsNominated(t) && ex.LeavingForOther(t.ID):
		w.Binding = ex.preempting(t)
	case !t.GoesFirst() && ex.queue.RecoveryBlocks():
		w.Binding.Code = model.ReasonRecoveryFirst
	case ex.Now() < now.NotBefore:
		w.Binding = model.Reason{Code: model.ReasonInterval, Span: ex.Options().Interval}
	case ex.placer.Fits(t, w.Fits):
		ex.bindingReasonFitting(w, t, now)
	case t.GPUs == 0 || ex.placer.FitsGPUs(t, w.Fits, func(*model.GPU) bool { return true }):
		w.Binding, w.Rule = ex.reserve.HostLack(t, w.Fits), model.RuleHost
	default:
		ex.bindingReasonGPUs(w, t)
	}
}

// bindingReasonFitting handles a task that fits: others go first, or it is about to
// start.
func (ex *Explainer) bindingReasonFitting(w *Why, t *model.Task, now Launching) {
	turn := ex.queue.TurnBefore(t)
	switch {
	case now.InFlight > 0:
		w.Binding = model.Reason{Code: model.ReasonHanding, Count: now.InFlight, Limit: ex.Options().LaunchesAtOnce}
	case !ex.queue.InSight(t) && turn != nil:
		w.Binding, w.Rule, w.Turn = model.Reason{Code: model.ReasonFairShare, Count: turn.Later}, model.RuleFairShare, turn
	case !ex.queue.InSight(t):
		w.Binding = model.Reason{Code: model.ReasonLookAhead, Count: ex.queue.Place(t) - 1, Limit: ex.Options().LookAhead}
	case now.Again > ex.Now(): // nothing has happened since the last cycle, but time has passed
		w.Binding = model.Reason{Code: model.ReasonLookedAtLater, Span: now.Again.Sub(ex.Now())}
	default:
		w.Binding.Code = model.ReasonAboutToStart
	}
}

// bindingReasonGPUs handles a task that fits on too few GPUs.
func (ex *Explainer) bindingReasonGPUs(w *Why, t *model.Task) {
	switch {
	case t.GPUs > ex.MostGPUs():
		w.Binding = ex.tooMany(t.GPUs, ex.MostGPUs())
		return
	case len(w.Rejected) == 0:
		w.Binding = model.Reason{Code: model.ReasonScattered, Count: len(w.Fits), Limit: t.GPUs}
		return
	}
	w.Binding = model.Reason{Code: model.ReasonTurnedDown, Count: len(w.Fits), Limit: t.GPUs}
	nearest := ex.placer.Nearest(w.Rejected)
	w.Nearest = &nearest
	if w.Turn = ex.queue.TurnBefore(t); w.Turn != nil {
		w.Rule = model.RuleFairShare
	}
}

// suspendedFor returns the reason of a task's suspension, with its duration so far.
func (ex *Explainer) suspendedFor(t *model.Task) model.Reason {
	r := t.Suspension.Reason
	if since := t.Suspension.Since; since > 0 {
		r.Span = ex.Now().Sub(since)
	}
	return r
}

// preempting returns how many tasks are being suspended for a task, and the first of
// them.
func (ex *Explainer) preempting(t *model.Task) model.Reason {
	r := model.Reason{Code: model.ReasonWay}
	for _, g := range ex.GPUList() {
		for i := range g.Residents {
			v := ex.TaskByID(g.Residents[i].Task)
			if v.Phase != model.Suspending || v.Suspension.Preemptor() != t.ID {
				continue
			}
			if r.Count++; r.Count == 1 {
				r.Task, r.GPU = v.ID, g.Index
			}
		}
	}
	return r
}
