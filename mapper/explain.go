package mapper

import (
	"carma/mapper/model"
	"carma/mapper/queue"
)

// Check returns an *[model.ImpossibleError] with the nearest possible value if a request cannot
// be met even on an empty machine.
func (s *State) Check(r model.Request, e model.Estimate) error {
	if no := s.impossible(r, e); no != nil {
		return no
	}
	return nil
}

func (s *State) impossible(r model.Request, e model.Estimate) *model.ImpossibleError {
	if no := s.impossibleHost(r); no != nil {
		return no
	}
	if r.NoGPU {
		return s.checkSlot(r.Slot)
	}
	n, most := max(r.GPUs, 1), s.MostBookable()
	switch {
	case n > len(most):
		return &model.ImpossibleError{Option: "gpus", Reason: s.tooMany(n, len(most))}
	case e.Memory > most.Of(n) && !e.ExceedsByMargin(most.Of(n)):
		return &model.ImpossibleError{Option: "mem", Reason: model.Reason{Code: model.ReasonTooMuchMemory, Need: e.Memory, Count: n, Of: most.Of(n)}}
	}
	need, alone := e.Memory, r.Exclusive || e.WholeGPU || s.IdleOnly()
	if s.Learns(&model.Task{Request: r, Estimate: e}) {
		need, alone = s.LearnerNeed(n), false
	}
	if no := s.users.CheckQuota(r, n, need, alone); no != nil {
		return no
	}
	return s.checkSlot(r.Slot)
}

// whole returns the number of GPUs that are whole cards.
func (s *State) whole() (n int) {
	for _, g := range s.GPUList() {
		if !g.MIG {
			n++
		}
	}
	return n
}

// MostGPUs returns the largest number of known GPUs that one task can have: all whole
// cards, or one MIG instance.
func (s *State) MostGPUs() int { return max(s.whole(), min(len(s.GPUList()), 1)) }

// tooMany says why a task can never have n GPUs here; limit is the most it can have.
func (s *State) tooMany(n, limit int) model.Reason {
	if whole := s.whole(); n <= len(s.GPUList()) && n > whole {
		return model.Reason{Code: model.ReasonOnlyParts, Count: n, Limit: whole}
	}
	return model.Reason{Code: model.ReasonTooManyGPUs, Count: n, Limit: limit}
}

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

// Why explains the state of an unfinished task; ok is false for any other.
func (s *State) Why(id model.TaskID) (Why, bool) {
	t := s.TaskByID(id)
	if t == nil {
		return Why{}, false
	}
	w := Why{Task: id, Phase: t.Phase, Recovery: t.GoesFirst()}
	if !t.Waiting() {
		w.Binding = t.Reason
		if fills := s.reserve.BackfillReason(t); fills.Code != "" {
			w.Binding = fills
		}
		if t.Phase == model.Suspending && t.Suspension.Preemptor() != 0 {
			w.Binding = s.suspendedFor(t)
		}
		if rule, reason := s.queue.HeldBy(t); rule != "" {
			w.Rule, w.Binding = rule, reason
		}
		return w, true
	}
	w.Position = s.queue.PositionOf(t)
	if t.Phase == model.Suspended && t.Suspension.Preemptor() != 0 {
		w.Away = s.suspendedFor(t)
	}
	for _, g := range s.GPUList() {
		if t.GPUs == 0 {
			break
		}
		if rule := s.placer.Reject(t, g); rule != "" {
			w.Rejected = append(w.Rejected, s.placer.Rejection(t, g, rule))
		} else {
			w.Fits = append(w.Fits, g.ID)
		}
	}
	s.bindingReason(&w, t)
	return w, true
}

// bindingReason picks the decisive reason: first what holds all tasks, then what holds
// this task regardless of GPUs, then the GPUs.
func (s *State) bindingReason(w *Why, t *model.Task) {
	over := s.users.OverQuota(t)
	switch {
	case s.breakers.IsEngineDown():
		w.Binding = s.breakers.EngineDown()
	case s.paused != nil:
		w.Binding = s.pausedFor()
	case s.breakers.IsEnginePaused():
		w.Binding = s.breakers.EngineReason()
	case len(s.GPUList()) == 0 && t.GPUs > 0:
		w.Binding.Code = model.ReasonNoGPU
	case s.breakers.AwaitsNamespace(t):
		w.Binding = s.breakers.NamespaceReason(t)
	case t.NotBefore > s.Now():
		w.Binding = model.Reason{Code: model.ReasonBackOff, Span: t.NotBefore.Sub(s.Now())}.WithCause(t.Reason)
	case over.Code != "":
		w.Binding, w.Rule = over, model.RuleQuota
	case s.IsNominated(t) && s.LeavingForOther(t.ID):
		w.Binding = s.preempting(t)
	case !t.GoesFirst() && s.queue.RecoveryBlocks():
		w.Binding.Code = model.ReasonRecoveryFirst
	case s.Now() < s.notBefore:
		w.Binding = model.Reason{Code: model.ReasonInterval, Span: s.Ledger.Options().Interval}
	case s.placer.Fits(t, w.Fits):
		s.bindingReasonFitting(w, t)
	case t.GPUs == 0 || s.placer.FitsGPUs(t, w.Fits, func(*model.GPU) bool { return true }):
		w.Binding, w.Rule = s.reserve.HostLack(t, w.Fits), model.RuleHost
	default:
		s.bindingReasonGPUs(w, t)
	}
}

// bindingReasonFitting handles a task that fits: others go first, or it is about to
// start.
func (s *State) bindingReasonFitting(w *Why, t *model.Task) {
	turn := s.queue.TurnBefore(t)
	switch {
	case s.launchLimitReached():
		w.Binding = model.Reason{Code: model.ReasonHanding, Count: s.inflightLaunches(), Limit: s.Ledger.Options().LaunchesAtOnce}
	case !s.queue.InSight(t) && turn != nil:
		w.Binding, w.Rule, w.Turn = model.Reason{Code: model.ReasonFairShare, Count: turn.Later}, model.RuleFairShare, turn
	case !s.queue.InSight(t):
		w.Binding = model.Reason{Code: model.ReasonLookAhead, Count: s.queue.Place(t) - 1, Limit: s.Ledger.Options().LookAhead}
	case s.again > s.Now(): // nothing has happened since the last cycle, but time has passed
		w.Binding = model.Reason{Code: model.ReasonLookedAtLater, Span: s.again.Sub(s.Now())}
	default:
		w.Binding.Code = model.ReasonAboutToStart
	}
}

// bindingReasonGPUs handles a task that fits on too few GPUs.
func (s *State) bindingReasonGPUs(w *Why, t *model.Task) {
	switch {
	case t.GPUs > s.MostGPUs():
		w.Binding = s.tooMany(t.GPUs, s.MostGPUs())
		return
	case len(w.Rejected) == 0:
		w.Binding = model.Reason{Code: model.ReasonScattered, Count: len(w.Fits), Limit: t.GPUs}
		return
	}
	w.Binding = model.Reason{Code: model.ReasonTurnedDown, Count: len(w.Fits), Limit: t.GPUs}
	nearest := s.placer.Nearest(w.Rejected)
	w.Nearest = &nearest
	if w.Turn = s.queue.TurnBefore(t); w.Turn != nil {
		w.Rule = model.RuleFairShare
	}
}
