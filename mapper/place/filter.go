package place

import (
	"slices"

	"carma/mapper/model"
)

var ruleOrder = []model.Rule{model.RuleFault, model.RuleClosed, model.RulePart, model.RulePinned, model.RuleSuspended, model.RuleSick, model.RuleKept, model.RuleAlone, model.RuleIdle, model.RuleForeign, model.RuleMaxTasks, model.RuleMemory, model.RuleReserved, model.RuleSharing, model.RuleUtilization, model.RuleUnseen, model.RuleSlowdown, model.RuleWait, model.RuleMinFree, model.RuleSMACT, model.RuleWarmUp}

// Reject checks the preconditions for placing t on g and returns the first rule that
// rejects g, or "".
func (pl *Placer) Reject(t *model.Task, g *model.GPU) model.Rule {
	pl.asked++
	alone := pl.RunsAlone(t)
	switch {
	case g.Missing || g.FaultReason() != "":
		return model.RuleFault
	case g.Cordon != nil:
		return model.RuleClosed
	case t.GPUs > 1 && g.MIG:
		return model.RulePart
	case !t.MayUse(g.ID):
		return model.RulePinned
	case !pl.ResumeTargets(t, g):
		return model.RuleSuspended
	case g.Breaker.Open(pl.Now()):
		return model.RuleSick
	case pl.ReservedForOther(t, g):
		return model.RuleKept
	case g.ExclusivelyUsed():
		return model.RuleAlone
	case (alone || g.Sharing == model.SharingAlone) && !g.Idle():
		return model.RuleIdle
	case alone && g.ForeignMemory() > pl.Options().Headroom:
		return model.RuleForeign
	case pl.Full(g):
		return model.RuleMaxTasks
	case pl.FreeFor(t, g) < max(pl.NeedOn(t, g), 1):
		return model.RuleMemory
	case pl.reserve.Any() && pl.reserve.Against(t, g) != nil:
		return model.RuleReserved
	}
	if pl.policy.Filter != nil && !g.Idle() {
		if rule := pl.policy.Filter(policyView{pl}, t, g); rule != "" {
			return rule
		}
	}
	return pl.RejectAny(g)
}

// Rejection adds the figures to a rule that Reject returned.
func (pl *Placer) Rejection(t *model.Task, g *model.GPU, rule model.Rule) model.Rejection {
	r := model.Rejection{GPU: g.ID, Index: g.Index, Rule: rule, Tasks: len(g.Residents)}
	switch rule {
	case model.RuleFault:
		r.Fault, r.Missing = g.FaultReason(), g.Missing
	case model.RuleClosed:
		r.Closed = g.Cordon
	case model.RuleReserved:
		r.Reserved = new(*pl.reserve.Against(t, g))
	case model.RuleSick:
		r.Fault, r.Remedy = g.Breaker.Fault.Cause, g.Breaker.Fault.Remedy
	case model.RuleKept:
		r.Task = pl.reserve.ReservedForTask(g)
	case model.RuleAlone:
		r.Task = g.Residents[0].Task
	case model.RuleForeign:
		r.Have = g.ForeignMemory()
	case model.RuleMemory:
		r.Have, r.Need, r.Of = g.Capacity-pl.Options().Headroom-pl.FreeFor(t, g), pl.NeedOn(t, g), g.Capacity-pl.Options().Headroom
		if i := slices.IndexFunc(g.Residents, func(r model.Resident) bool { return r.Learning }); i >= 0 {
			r.Learner, r.Span = g.Residents[i].Task, pl.Options().LearnMemory
		}
	case model.RuleMinFree:
		r.Have, r.Need = pl.FreeMemory(g), pl.Options().MinFree
	case model.RuleSMACT:
		r.SMACT, r.Cap = g.SMACT, pl.Options().SMACTCap
	case model.RuleUnseen:
		r.Task = pl.scorer.closedTo(t, g)
	case model.RuleSlowdown:
		no := pl.refusal(t, g)
		r.Slowdown, r.Cap, r.Task = no.slowdown, no.most, no.task
		if allowed := pl.predictor.SlowdownCap(); no.most < allowed {
			r.Allowed = allowed
		}
	case model.RuleWarmUp:
		for _, p := range g.Residents {
			if p.WarmUntil > pl.Now() {
				r.Task = p.Task
			}
		}
	}
	return r
}
