package mapper

import (
	"slices"

	"carma/internal/units"
)

// OrphanAdopted says that the engine runs an attempt that the journal has lost. It adds
// the task if it is not known. A waiting task, or one whose older attempt is thought to
// run, continues with this attempt. The memory is allocated on the attempt's GPUs even if
// it exceeds what is free there. An attempt that is known changes nothing. An unknown
// task number may be lower than the last one, because tasks were submitted before the
// container was found.
type OrphanAdopted struct {
	At units.Instant `json:"at"`
	Request
	Attempt  int           `json:"attempt"`
	Grants   []Grant       `json:"grants"`
	Host     HostShare     `json:"host,omitzero"`
	Launched units.Instant `json:"launched,omitempty"` // 0 if not known
}

func (e OrphanAdopted) when() units.Instant { return e.At }
func (OrphanAdopted) kind() string          { return "taken-in" }
func (e OrphanAdopted) about() TaskID       { return e.ID }

// EndRecovered says that a task has ended according to its record, although the journal
// lost its end. Task is its final state.
type EndRecovered struct {
	At   units.Instant `json:"at"`
	Task Task          `json:"task"`
}

func (e EndRecovered) when() units.Instant { return e.At }
func (EndRecovered) kind() string          { return "settled" }
func (e EndRecovered) about() TaskID       { return e.Task.ID }

func (s *State) endRecovered(ev EndRecovered) {
	t := s.tasks[ev.Task.ID]
	if t == nil || !ev.Task.Phase.Finished() {
		return
	}
	s.withdrawFrom(t)
	t.Attempts = ev.Task.clone().Attempts
	s.end(t, ev.Task.Phase, ev.Task.Code, ev.Task.Reason)
	s.dirty = true
}

func (s *State) adoptOrphan(ev OrphanAdopted) {
	t := s.tasks[ev.ID]
	if !validGrants(ev.Grants, ev.NoGPU) || !ev.Host.valid() || ev.Attempt < 1 ||
		t != nil && t.Last() != nil && t.Last().N >= ev.Attempt {
		return
	}
	if t == nil {
		t = s.queue.addOrphan(ev)
	}
	if a := t.Current(); a != nil { // it ran on, unrecorded
		a.Ended, a.Class = s.now, ExitInfrastructure
		s.withdrawFrom(t)
		s.enqueue(t, Recovering)
	}
	t.GPUs, t.NoGPU = len(ev.Grants), len(ev.Grants) == 0
	if missing := ev.Attempt - 1 - lastOf(t); missing > 0 {
		t.Attempts = append(t.Attempts, Attempt{
			N: ev.Attempt - 1, Starts: missing, Ended: s.now, Class: ExitInfrastructure, NotAtFault: true,
		})
	}
	for _, grant := range ev.Grants {
		for i := range s.page(grant).Residents {
			s.byID[grant.GPU].Residents[i].Exclusive = false // the adopted task shares it
		}
	}
	decided, notBefore := len(s.out), s.notBefore
	s.forceLaunch(t, Launch{Task: t.ID, Attempt: ev.Attempt, Grants: ev.Grants, Host: ev.Host})
	s.notBefore, s.dirty = notBefore, true // it was launched earlier
	if a := t.Current(); a != nil && a.N == ev.Attempt && a.Started == 0 {
		since := s.now
		if ev.Launched > 0 {
			since = min(ev.Launched, s.now)
			a.Launched = since
		}
		s.onStarted(t, a, since)
	}
	// No decision to launch is returned: the attempt already runs.
	s.out = append(s.out[:decided:decided], slices.DeleteFunc(s.out[decided:], func(d Decision) bool {
		l, ok := d.(Launch)
		return ok && l.Task == t.ID
	})...)
}

// addOrphan adds the task of an orphaned container.
func (q *schedulingQueue) addOrphan(ev OrphanAdopted) *Task {
	q.lastID = max(q.lastID, ev.ID)
	t := &Task{Request: ev.Request, Phase: Held, Submitted: q.now}
	if ev.Launched > 0 {
		t.Submitted = min(ev.Launched, q.now)
	}
	for _, grant := range ev.Grants {
		t.NextGrant = max(t.NextGrant, grant.Memory.Clamp())
	}
	t.GPUs, t.Estimate.Memory, t.NextExclusive = len(ev.Grants), t.NextGrant, t.Exclusive // if it runs again
	t.shape()
	q.addTask(t)
	q.enrol(t)
	return t
}

func lastOf(t *Task) int {
	if a := t.Last(); a != nil {
		return a.N
	}
	return 0
}

func validGrants(grants []Grant, none bool) bool {
	if none {
		return len(grants) == 0
	}
	for i, g := range grants {
		if g.GPU == "" || g.Memory != g.Memory.Clamp() || slices.ContainsFunc(grants[:i], func(o Grant) bool { return o.GPU == g.GPU }) {
			return false
		}
	}
	return len(grants) > 0
}
