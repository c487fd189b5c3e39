package attempt

import (
	"slices"

	"carma/internal/units"
	"carma/mapper/ledger"
	"carma/mapper/model"
)

// Bind launches or resumes a task that has already left its queue.
func (at *Attempts) Bind(t *model.Task, gpus []*model.GPU) {
	if t.ResumesInPlace() {
		t.Suspension.SortAsBefore(gpus)
	}
	alone, n := at.RunsAlone(t), 1
	if last := t.Last(); last != nil {
		n = last.N + 1
	}
	grants := at.grants(t, gpus, alone)
	if t.Phase == model.Suspended {
		at.applyResume(t, gpus, model.Resume{Task: t.ID, Attempt: t.Last().N, From: t.Suspension.GPUs(), Grants: grants, Alone: alone})
		return
	}
	at.applyLaunch(t, gpus, model.Launch{Task: t.ID, Attempt: n, Grants: grants, Host: at.reserve.HostShareAt(t, gpus), Alone: alone, Fills: at.placer.BackfillsFor(t, gpus)})
}

// grants returns the grants of a task on some GPUs. A task that is alone gets all memory.
func (at *Attempts) grants(t *model.Task, gpus []*model.GPU, alone bool) []model.Grant {
	var grants []model.Grant
	if len(gpus) > 0 {
		grants = make([]model.Grant, len(gpus))
	}
	for i, g := range gpus {
		grants[i] = model.Grant{GPU: g.ID, Memory: t.NeedOn(g)}
		switch {
		case alone:
			grants[i].Memory = at.FreeFor(t, g)
		case at.Options().Booking == model.BookSamples:
			grants[i].Memory = 0
		case t.Learner:
			grants[i].Memory = at.learnerGrant(t, g)
		}
	}
	return grants
}

// applyLaunch begins an attempt of a task that has already left its queue. It allocates
// the memory in the same step, before the task uses any.
func (at *Attempts) applyLaunch(t *model.Task, gpus []*model.GPU, d model.Launch) {
	a := model.Attempt{N: d.Attempt, Grants: slices.Clone(d.Grants), Host: d.Host, Launched: at.Now(), Fills: d.Fills}
	t.From = model.QueuePlace{Phase: t.Phase, QueuedAt: t.QueuedAt, BlockedAt: t.BlockedAt}
	at.breakers.Launched(t, gpus)
	at.placer.AddResident(t, gpus, a.Grants, d.Alone)
	if t.GPUs == 0 {
		t.Speed = 1
	}
	at.queue.LeaveBacklog(t)
	at.preempter.ClearNominations(t)
	at.AllocateHost(t, d.Host)
	t.Attempts = append(t.Attempts, a)
	t.Seat, t.Back = nil, ""
	t.Phase, t.NotBefore, t.BlockedAt, t.Done, t.PacedAt, t.Pace = model.Launching, 0, 0, 0, 0, model.ThroughputState{}
	at.placer.Retry(t)
	at.users.Dequeued(t)
	at.users.Occupy(t)
	at.predictor.TasksChanged(gpus)
	at.placer.MarkLaunched(gpus)
	if at.Options().Interval > 0 {
		at.notBefore = at.Now().Add(at.Options().Interval)
		at.SetTimer(at.notBefore, ledger.Timer{})
	}
	at.reserve.DropHead(t.ID)
	at.beginLaunch(t.ID, a.N)
	at.Decide(d)
}

// learnerGrant returns the grant of a learner on a GPU: all memory that is free there
// beside the margin, within its user's quota.
func (at *Attempts) learnerGrant(t *model.Task, g *model.GPU) units.Bytes {
	grant := at.FreeMemory(g) - at.reserve.Withheld(t, g)
	if !g.Idle() {
		grant -= at.Options().Margin
	}
	if left, bounded := at.users.MemoryLeft(t.User, t.Account); bounded {
		grant = min(grant, left/units.Bytes(t.GPUs))
	}
	return max(grant, t.NextGrant)
}
