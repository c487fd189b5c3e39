package mapper

import (
	"slices"

	"carma/mapper/ledger"
	"carma/mapper/model"
)

// bind launches or resumes a task that has already left its queue.
func (s *State) bind(t *model.Task, gpus []*model.GPU) {
	if t.ResumesInPlace() {
		t.Suspension.SortAsBefore(gpus)
	}
	if alone := s.RunsAlone(t); t.Phase == model.Suspended {
		s.resume(t, gpus, s.grants(t, gpus, alone), alone)
	} else {
		s.launch(t, gpus, alone)
	}
}

// launch allocates the memory in the same step, before the task uses any.
func (s *State) launch(t *model.Task, gpus []*model.GPU, alone bool) {
	s.book(t, gpus, s.grants(t, gpus, alone), s.reserve.HostShareAt(t, gpus), alone, s.placer.BackfillsFor(t, gpus))
}

// grants returns the grants of a task on some GPUs. A task that is alone gets all memory.
func (s *State) grants(t *model.Task, gpus []*model.GPU, alone bool) []model.Grant {
	var grants []model.Grant
	if len(gpus) > 0 {
		grants = make([]model.Grant, len(gpus))
	}
	for i, g := range gpus {
		grants[i] = model.Grant{GPU: g.ID, Memory: t.NeedOn(g)}
		switch {
		case alone:
			grants[i].Memory = s.FreeFor(t, g)
		case s.Ledger.Options().Booking == model.BookSamples:
			grants[i].Memory = 0
		case t.Learner:
			grants[i].Memory = s.learnerGrant(t, g)
		}
	}
	return grants
}

// book begins an attempt of a task that has already left its queue.
func (s *State) book(t *model.Task, gpus []*model.GPU, grants []model.Grant, share model.HostShare, alone bool, fills model.TaskID) {
	a := model.Attempt{N: 1, Grants: grants, Host: share, Launched: s.Now(), Fills: fills}
	if last := t.Last(); last != nil {
		a.N = last.N + 1
	}
	t.From = model.QueuePlace{Phase: t.Phase, QueuedAt: t.QueuedAt, BlockedAt: t.BlockedAt}
	s.breakers.Launched(t, gpus)
	s.placer.AddResident(t, gpus, grants, alone)
	if t.GPUs == 0 {
		t.Speed = 1
	}
	s.queue.LeaveBacklog(t)
	s.preempter.ClearNominations(t)
	s.AllocateHost(t, share)
	t.Attempts = append(t.Attempts, a)
	t.Seat, t.Back = nil, ""
	t.Phase, t.NotBefore, t.BlockedAt, t.Done, t.PacedAt, t.Pace = model.Launching, 0, 0, 0, 0, model.ThroughputState{}
	s.placer.Retry(t)
	s.users.Dequeued(t)
	s.users.Occupy(t)
	s.predictor.TasksChanged(gpus)
	s.placer.MarkLaunched(gpus)
	if s.Ledger.Options().Interval > 0 {
		s.notBefore = s.Now().Add(s.Ledger.Options().Interval)
		s.SetTimer(s.notBefore, ledger.Timer{})
	}
	s.reserve.DropHead(t.ID)
	s.beginLaunch(t.ID, a.N)
	s.Decide(model.Launch{Task: t.ID, Attempt: a.N, Grants: slices.Clone(a.Grants), Host: share, Alone: alone, Fills: fills})
}
