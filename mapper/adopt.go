package mapper

import (
	"slices"

	"carma/mapper/model"
)

func (s *State) endRecovered(ev model.EndRecovered) {
	t := s.TaskByID(ev.Task.ID)
	if t == nil || !ev.Task.Phase.Finished() {
		return
	}
	s.withdrawFrom(t)
	t.Attempts = ev.Task.Clone().Attempts
	s.lifecycle.End(t, ev.Task.Phase, ev.Task.Code, ev.Task.Reason)
	s.MarkDirty()
}

func (s *State) adoptOrphan(ev model.OrphanAdopted) {
	t := s.TaskByID(ev.ID)
	if !validGrants(ev.Grants, ev.NoGPU) || !ev.Host.Valid() || ev.Attempt < 1 ||
		t != nil && t.Last() != nil && t.Last().N >= ev.Attempt {
		return
	}
	if t == nil {
		t = s.queue.AddOrphan(ev)
	}
	if a := t.Current(); a != nil { // it ran on, unrecorded
		a.Ended, a.Class = s.Now(), model.ExitInfrastructure
		s.withdrawFrom(t)
		s.lifecycle.Enqueue(t, model.Recovering)
	}
	t.GPUs, t.NoGPU = len(ev.Grants), len(ev.Grants) == 0
	if missing := ev.Attempt - 1 - lastOf(t); missing > 0 {
		t.Attempts = append(t.Attempts, model.Attempt{
			N: ev.Attempt - 1, Starts: missing, Ended: s.Now(), Class: model.ExitInfrastructure, NotAtFault: true,
		})
	}
	for _, grant := range ev.Grants {
		for i := range s.page(grant).Residents {
			s.GPU(grant.GPU).Residents[i].Exclusive = false // the adopted task shares it
		}
	}
	decided, notBefore := len(s.Decisions()), s.notBefore
	s.forceLaunch(t, model.Launch{Task: t.ID, Attempt: ev.Attempt, Grants: ev.Grants, Host: ev.Host})
	s.notBefore = notBefore // it was launched earlier
	s.MarkDirty()
	if a := t.Current(); a != nil && a.N == ev.Attempt && a.Started == 0 {
		since := s.Now()
		if ev.Launched > 0 {
			since = min(ev.Launched, s.Now())
			a.Launched = since
		}
		s.onStarted(t, a, since)
	}
	// No decision to launch is returned: the attempt already runs.
	s.Withdraw(decided, func(d model.Decision) bool {
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
