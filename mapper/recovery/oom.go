package recovery

import (
	"carma/internal/units"
	"carma/mapper/model"
	"carma/mapper/predict"
)

// recoverOOM requeues a task with more memory (see attributeOOM), the last time with
// exclusive GPUs.
func (rc *Recovery) recoverOOM(t *model.Task, a *model.Attempt, v oomAttribution) {
	if !v.own && t.NotAtFault < rc.Options().BlamelessRetries {
		a.NotAtFault = true
		t.NotAtFault++
		rc.lifecycle.Requeue(t, model.Recovering, model.Reason{Code: model.ReasonOOMBlameless}.WithCause(v.reason))
		return
	}
	t.OOMs++
	switch {
	case v.alone && v.demand+rc.Options().Headroom >= v.most:
		rc.lifecycle.Finish(t, model.Failed, a.Code, model.Reason{Code: model.ReasonOOMAlone}.WithCause(v.reason))
		return
	case t.OOMs >= rc.Options().Attempts:
		rc.lifecycle.Finish(t, model.Failed, a.Code, model.Reason{Code: model.ReasonOOMTooOften, Count: t.OOMs}.WithCause(v.reason))
		return
	case rc.Options().Recovery == model.RecoverOriginal:
		t.NextExclusive = true
	case rc.Options().Recovery == model.RecoverStaged:
		t.NextGrant = max(t.NextGrant, stagedFloor*units.Bytes(min(t.OOMs, 2)))
		t.NextExclusive = t.NextExclusive || t.OOMs > 2
	case t.OOMs == 1:
		t.NextGrant = predict.AfterOOM(max(v.demand, t.NextGrant))
	default:
		t.NextGrant = max(v.demand, t.NextGrant).Scale(oomAgainFactor).Clamp()
	}
	switch {
	case !t.ConfirmedOOM && rc.Options().Recovery != model.RecoverOriginal && rc.Options().Recovery != model.RecoverStaged:
		t.NextGrant = min(t.NextGrant, v.most) // an unconfirmed OOM gives no exclusive GPU
	case t.OOMs == rc.Options().Attempts-1 && !v.alone:
		t.NextExclusive, t.NextGrant = true, v.demand
	case t.NextGrant > v.most:
		t.NextExclusive = true
	}
	if t.NextExclusive { // other processes may use as much as the headroom
		t.NextGrant = max(0, min(t.NextGrant, v.most-rc.Options().Headroom))
	}
	oom := model.Reason{Code: model.ReasonOOM}.WithCause(v.reason)
	if no := rc.users.CheckQuota(t.Request, t.GPUs, t.NextGrant, rc.RunsAlone(t)); no != nil {
		rc.lifecycle.Finish(t, model.Failed, a.Code, no.Reason.WithCause(oom))
		return
	}
	rc.lifecycle.Requeue(t, model.Recovering, oom)
}

// recoverSuspected requeues a task once with more memory after an error about exhausted
// memory of an unknown type. It returns false for a task that already had more memory, or
// that cannot get more: that task has failed by its own fault.
func (rc *Recovery) recoverSuspected(t *model.Task, a *model.Attempt, ev model.Exited, v oomAttribution) bool {
	if !v.own && t.NotAtFault < rc.Options().BlamelessRetries {
		a.NotAtFault = true
		t.NotAtFault++
		rc.lifecycle.Requeue(t, model.Recovering, model.Reason{Code: model.ReasonOOMBlameless}.WithCause(v.reason))
		return true
	}
	need := min(predict.AfterOOM(max(v.demand, t.NextGrant)), v.most)
	if t.Suspected || need <= a.Grants[0].Memory {
		return false
	}
	if rc.users.CheckQuota(t.Request, t.GPUs, need, rc.RunsAlone(t)) != nil {
		return false
	}
	t.Suspected, t.NextGrant = true, need
	rc.lifecycle.Requeue(t, model.Recovering, model.Reason{Code: model.ReasonOOMSuspected, Text: ev.Message}.WithCause(v.reason))
	return true
}

// stagedFloor is the free memory that AEGIS requires after the first GPU OOM; it requires
// twice as much after the second.
const stagedFloor = 10 * units.GiB

// The grant of a task after its own GPU OOM: after the first, its demand times a
// factor plus a margin (predict.AfterOOM); after each further one, its next grant times
// oomAgainFactor. The factor for a neighbour that exceeded its grant is preempt.GrowFactor.
const oomAgainFactor = 1.5
