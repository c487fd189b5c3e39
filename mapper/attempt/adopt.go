package attempt

import (
	"slices"

	"carma/mapper/model"
)

// EndRecovered ends a task as an older record says, wherever it is now.
func (at *Attempts) EndRecovered(ev model.EndRecovered) {
	t := at.TaskByID(ev.Task.ID)
	if t == nil || !ev.Task.Phase.Finished() {
		return
	}
	at.Detach(t)
	t.Attempts = ev.Task.Clone().Attempts
	at.lifecycle.End(t, ev.Task.Phase, ev.Task.Code, ev.Task.Reason)
	at.MarkDirty()
}

// AdoptOrphan adds the attempt of a container that runs and is not recorded.
func (at *Attempts) AdoptOrphan(ev model.OrphanAdopted) {
	t := at.TaskByID(ev.ID)
	if !validGrants(ev.Grants, ev.NoGPU) || !ev.Host.Valid() || ev.Attempt < 1 ||
		t != nil && t.Last() != nil && t.Last().N >= ev.Attempt {
		return
	}
	if t == nil {
		t = at.queue.AddOrphan(ev)
	}
	if a := t.Current(); a != nil { // it ran on, unrecorded
		a.Ended, a.Class = at.Now(), model.ExitInfrastructure
		at.Detach(t)
		at.lifecycle.Enqueue(t, model.Recovering)
	}
	t.GPUs, t.NoGPU = len(ev.Grants), len(ev.Grants) == 0
	if missing := ev.Attempt - 1 - lastOf(t); missing > 0 {
		t.Attempts = append(t.Attempts, model.Attempt{
			N: ev.Attempt - 1, Starts: missing, Ended: at.Now(), Class: model.ExitInfrastructure, NotAtFault: true,
		})
	}
	for _, grant := range ev.Grants {
		for i := range at.page(grant).Residents {
			at.GPU(grant.GPU).Residents[i].Exclusive = false // the adopted task shares it
		}
	}
	decided, notBefore := len(at.Decisions()), at.notBefore
	at.ApplyLaunch(t, model.Launch{Task: t.ID, Attempt: ev.Attempt, Grants: ev.Grants, Host: ev.Host})
	at.notBefore = notBefore // it was launched earlier
	at.MarkDirty()
	if a := t.Current(); a != nil && a.N == ev.Attempt && a.Started == 0 {
		since := at.Now()
		if ev.Launched > 0 {
			since = min(ev.Launched, at.Now())
			a.Launched = since
		}
		at.onStarted(t, a, since)
	}
	// No decision to launch is returned: the attempt already runs.
	at.Withdraw(decided, func(d model.Decision) bool {
		l, ok := d.(model.Launch)
		return ok && l.Task == t.ID
	})
}

func lastOf(t *model.Task) int {
	if a := t.Last(); a != nil {
		return a.N
	}
	return 0
}

func validGrants(grants []model.Grant, none bool) bool {
	if none {
		return len(grants) == 0
	}
	for i, g := range grants {
		if g.GPU == "" || g.Memory != g.Memory.Clamp() || slices.ContainsFunc(grants[:i], func(o model.Grant) bool { return o.GPU == g.GPU }) {
			return false
		}
	}
	return len(grants) > 0
}
