package preempt

import (
	"slices"
	"time"

	"carma/internal/units"
	"carma/mapper/ledger"
	"carma/mapper/model"
)

// SetRunning sets a task running that has resumed or could not be suspended.
func (pre *Preempter) SetRunning(t *model.Task) {
	a, why := t.Current(), t.Suspension.Reason
	if since := t.Suspension.Since; since > 0 {
		pre.RecordSuspension(a, t.Suspension)
		pre.onResumed(a, why)
	}
	if t.Suspension.Preemptor() != 0 {
		t.ClearReason(why.Code)
	}
	t.Phase, t.Suspension, t.Hold, t.Idle, t.PacedAt = model.Running, nil, nil, model.Idleness{Touched: t.Idle.Touched}, max(t.PacedAt, pre.Now())
	pre.bookSuspendedMemory(t)
	pre.MarkDirty()
	if ends := pre.SlotEnds(t); ends != units.Never {
		pre.SetTimer(max(ends, pre.Now()), ledger.Timer{})
	}
	if t.TimeLimit > 0 {
		pre.SetTimer(max(pre.LimitEnds(t), pre.Now()), ledger.Timer{Task: t.ID, Attempt: a.N})
	}
	for _, grant := range a.Grants { // it has a load again
		pre.predictor.UpdateSpeeds([]*model.GPU{pre.GPU(grant.GPU)})
	}
	mover := ""
	if why.Code == model.ReasonMoved {
		mover = why.Name
	}
	pre.evictPinned(t, mover) // to the GPUs to which it was pinned meanwhile
}

// SuspendRequested suspends a task at the request of a user, if it can be suspended.
func (di *displacer) SuspendRequested(ev model.SuspendAsked) {
	t := di.TaskByID(ev.Task)
	if di.CannotSuspend(ev.Task).Code != "" {
		return
	}
	why := model.Reason{Code: model.ReasonSuspended, Name: ev.By, Text: ev.Why}
	di.Suspend(t, why, t.VacatesFor(why))
}

// Suspend suspends a running task for a reason, and reports whether it did: of recorded
// decisions, only the recorded suspensions happen. inPlace: its program vacates the GPUs.
func (di *displacer) Suspend(t *model.Task, why model.Reason, inPlace bool) bool {
	d, ok := di.Resolve(model.Suspend{Task: t.ID, Attempt: t.Last().N, Host: di.SuspendableOn(t), Lent: di.LendsMemory(t), Reason: why, Leave: inPlace})
	if ok {
		di.ApplySuspend(t, d.(model.Suspend))
	}
	return ok
}

// ApplySuspend begins a suspension: the task does no work from now on.
func (di *displacer) ApplySuspend(t *model.Task, d model.Suspend) {
	what := SuspensionFor(d.Reason, d.Host)
	what.Lent, what.InPlace = d.Lent, d.Leave
	di.predictor.UpdateWork(t)
	t.Phase, t.Suspension = model.Suspending, &what
	di.bookSuspendedMemory(t)
	for _, grant := range t.Current().Grants {
		di.predictor.TasksChanged([]*model.GPU{di.GPU(grant.GPU)})
	}
	di.Decide(d)
}

// bookSuspendedMemory allocates host memory for the GPU memory of a suspended task.
func (di *displacer) bookSuspendedMemory(t *model.Task) {
	h := di.Host(t.Last().Host.Node)
	if h == nil {
		return
	}
	if r := h.Resident(t.ID); r != nil {
		free := h.FreeMemory()
		r.SuspendedMemory, r.Lent = t.SuspendedMemory(), t.LentMemory()
		h.Settle()
		if h.FreeMemory() > free { // others may have what it lends
			di.MarkDirty()
		}
	}
}

// suspendedTime returns the total time for which the current attempt has been suspended.
func (di *displacer) suspendedTime(t *model.Task) time.Duration { return t.SuspendedBy(di.Now()) }

// DefaultSuspendLeast is the default of the option of that name. Copying 40 GiB both ways at 5
// GiB/s takes twice 8 s, a seventh of it.
const DefaultSuspendLeast = 2 * time.Minute

// SuspensionFor returns the suspension for a decision with a reason.
func SuspensionFor(why model.Reason, host units.Bytes) model.Suspension {
	if why.Code == model.ReasonSuspended {
		return model.Suspension{By: why.Name, Why: why.Text, Host: host}
	}
	return model.Suspension{Reason: why, Host: host, Automatic: why.ResumesOnItsOwn()}
}

// SuspensionFailed handles a task that could not be suspended as without suspension. The next
// check of the GPU and the queues handles overuse and used slots, if that still helps; a
// task on a cordoned GPU continues.
func (pre *Preempter) SuspensionFailed(t *model.Task, why model.Reason) {
	if t.Phase != model.Running {
		return // it is stopping already
	}
	switch why.Code {
	case model.ReasonIdle:
		pre.displace(displacement{t, why, stopOnly})
	case model.ReasonSlowing:
		pre.EvictSlowing(pre.GPU(t.Current().Grants[0].GPU))
	case model.ReasonFilled:
		pre.reserve.BackfillFailed(why)
	}
}

// OnSuspended updates a task that has been suspended for a reason.
func (di *displacer) OnSuspended(t *model.Task, why model.Reason) {
	switch why.Code {
	case model.ReasonSlotUsed:
		di.queue.PutLast(t)
	case model.ReasonSlowing:
		t.Evictions++
	case model.ReasonOveruse:
		t.NextGrant = max(t.NextGrant, min(t.NextGrant.Scale(GrowFactor).Clamp(), di.MostFor(t.GPUs)))
		if t.Suspension.InPlace {
			t.NextGrant = di.OnOriginalGPUs(t, t.NextGrant)
		}
	}
}

// onResumed updates an attempt that runs again after a suspension for a reason.
func (di *displacer) onResumed(a *model.Attempt, why model.Reason) {
	a.Back = di.Now()
	if why.Code == model.ReasonSlotUsed {
		a.Turn = di.Now().Add(-a.SuspendedTime)
	}
}

// absencesKept is the number of latest suspensions of an attempt that are kept: about an
// hour's, as carma lets a task run for at least two minutes between two suspensions.
const absencesKept = 32

// RecordSuspension adds the interval of a suspension that ends now to its attempt.
func (di *displacer) RecordSuspension(a *model.Attempt, suspension *model.Suspension) {
	a.SuspendedTime += di.Now().Sub(suspension.Since)
	one := model.SuspensionSpan{From: suspension.Since, To: di.Now(), GPUs: make([]model.GPUID, 0, len(suspension.From))}
	for _, g := range suspension.From {
		one.GPUs = append(one.GPUs, g.GPU)
	}
	if n := len(a.Absences); n >= absencesKept {
		a.Absences = slices.Clone(a.Absences[n-absencesKept+1:])
	}
	a.Absences = append(slices.Clip(a.Absences), one) // copies of the state share the list
}

// GrowFactor is the factor on the memory that a task uses to which its grant is raised
// after it has exceeded it.
const GrowFactor = 1.1
