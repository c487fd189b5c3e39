package mapper

import (
	"fmt"
	"slices"

	"carma/internal/units"
	"carma/mapper/model"
)

// Audit checks the invariants that hold after every step and returns the
// first that does not. Tests, `carma history verify` and the property checks
// use it; it changes nothing.
//
//   - reserved is the sum of the grants of the tasks placed there, and with
//     the headroom it is within the capacity;
//   - an exclusive task is alone on its GPUs;
//   - a placed task has its grants on distinct GPUs of one machine, as many
//     as it asked for, and nowhere else;
//   - a waiting task is in exactly one queue and holds nothing;
//   - attempts are numbered from 1 without a gap, except where several failed
//     starts are kept as one;
//   - the sums kept for a user are the sums over the user's tasks;
//   - a task held for dependencies, its delay or its group is in no queue, and
//     its condition can still be met;
//   - a suspended task holds nothing on GPUs, and the memory it had there is allocated
//     on its machine;
//   - GPUs are reserved or nominated for waiting tasks only.
func (s *State) Audit() error {
	waiting := s.queue.waitingTasks()
	if err := s.auditPlaces(waiting); err != nil {
		return err
	}
	if err := s.queue.auditHeld(); err != nil {
		return err
	}
	if err := s.auditKindLinks(); err != nil {
		return err
	}
	if most := s.ceiling(s.bookable); s.emptyCeiling != nil && !slices.Equal(most, s.emptyCeiling) {
		return fmt.Errorf("%v can be booked on empty GPUs, kept as %v", most, s.emptyCeiling)
	}
	if err := s.queue.auditBacklog(); err != nil {
		return err
	}
	if err := s.queue.auditUsers(); err != nil {
		return err
	}
	for _, g := range s.gpus {
		if g.NominatedFor != 0 && (waiting[g.NominatedFor] == 0 || !s.opt.Preempts()) {
			return fmt.Errorf("GPU %d: kept for task %d, which does not wait", g.Index, g.NominatedFor)
		}
	}
	if h := s.queue.head; (len(h.GPUs) > 0 || h.Host != nil) && waiting[h.Task] == 0 {
		return fmt.Errorf("GPUs are kept free for task %d, which does not wait", h.Task)
	}
	return nil
}

// waitingTasks counts for each task the queues that have it.
func (q *schedulingQueue) waitingTasks() map[model.TaskID]int {
	waiting := map[model.TaskID]int{}
	for i := range q.waiting.lanes {
		for _, t := range q.waiting.lanes[i].waiting() {
			waiting[t.ID]++
		}
	}
	return waiting
}

// auditPlaces checks that the ledger, the tasks and the queues agree about where each
// task is.
func (s *State) auditPlaces(waiting map[model.TaskID]int) error {
	places := map[model.TaskID]int{}
	for i, g := range s.gpus {
		if s.byID[g.ID] != g || g.Pos() != i || i > 0 && compareGPUs(s.gpus[i-1], g) >= 0 {
			return fmt.Errorf("GPU %d (%s) is not where it belongs in the ledger", g.Index, g.ID)
		}
		if err := s.auditGPU(g); err != nil {
			return err
		}
		for _, r := range g.Residents {
			places[r.Task]++
		}
	}
	if err := s.auditHosts(); err != nil {
		return err
	}
	for i := range s.queue.waiting.lanes {
		for _, t := range s.queue.waiting.lanes[i].waiting() {
			if laneOf(t) != i {
				return fmt.Errorf("task %d is in the wrong queue", t.ID)
			}
		}
	}
	for _, t := range s.tasks { // no decision depends on the order
		if err := s.auditTask(t, places[t.ID], waiting[t.ID]); err != nil {
			return err
		}
	}
	return nil
}

func (l *ledger) auditGPU(g *model.GPU) error {
	var sum units.Bytes
	for _, r := range g.Residents {
		sum += r.Grant
		if r.Grant != r.Grant.Clamp() || r.Used != r.Used.Clamp() {
			return fmt.Errorf("GPU %d: task %d has a grant of %d bytes and uses %d", g.Index, r.Task, r.Grant, r.Used)
		}
		if r.Exclusive && len(g.Residents) > 1 {
			return fmt.Errorf("GPU %d: task %d should be alone, %d tasks are there", g.Index, r.Task, len(g.Residents))
		}
		if t := l.tasks[r.Task]; t == nil || !t.Phase.Placed() {
			return fmt.Errorf("GPU %d: holds memory for task %d, which is not placed", g.Index, r.Task)
		}
	}
	if g.Capacity != g.Capacity.Clamp() || g.OtherProcesses != g.OtherProcesses.Clamp() {
		return fmt.Errorf("GPU %d: has %d bytes, %d of them in foreign use", g.Index, g.Capacity, g.OtherProcesses)
	}
	if err := g.CheckSums(); err != nil {
		return err
	}
	if sum != g.Reserved {
		return fmt.Errorf("GPU %d: reserved is %d bytes, the grants sum to %d", g.Index, g.Reserved, sum)
	}
	if len(g.Residents) > 0 && g.Reserved > g.Bookable {
		return fmt.Errorf("GPU %d: %s reserved of %s", g.Index, g.Reserved, g.Bookable)
	}
	return nil
}

func (l *ledger) auditTask(t *model.Task, places, waits int) error {
	n := 0
	for _, a := range t.Attempts {
		if n += a.NumStarts(); a.N != n {
			return fmt.Errorf("task %d: attempt %d has the number %d", t.ID, n, a.N)
		}
	}
	switch {
	case t.ID > l.lastID || t.GPUs < 1 != t.NoGPU || t.NextGrant != t.NextGrant.Clamp():
		return fmt.Errorf("task %d wants %d GPUs and %d bytes, the last task is %d", t.ID, t.GPUs, t.NextGrant, l.lastID)
	case t.Phase.Finished():
		return fmt.Errorf("task %d is finished and still here", t.ID)
	case (t.Suspension == nil) == (t.Phase == model.Suspending || t.Phase == model.Suspended || t.Phase == model.Resuming) && t.Phase != model.Stopping:
		return fmt.Errorf("task %d (%s) has the suspension %+v", t.ID, t.Phase, t.Suspension)
	case t.Phase == model.Suspended:
		if a := t.Suspension; (waits == 1) != t.Waiting() || waits > 1 || places != 0 || len(t.Attempts) == 0 || a.Since == 0 || len(a.From) != t.GPUs {
			return fmt.Errorf("task %d is suspended, in %d queues and on %d GPUs: %+v", t.ID, waits, places, t.Suspension)
		}
	case t.Phase == model.Queued || t.Phase == model.Recovering:
		if waits != 1 || places != 0 {
			return fmt.Errorf("task %d (%s) is in %d queues and on %d GPUs", t.ID, t.Phase, waits, places)
		}
	case t.Phase.Placed():
		if grants := t.Current().Grants; waits != 0 || places != t.GPUs || len(grants) != t.GPUs {
			return fmt.Errorf("task %d (%s) wants %d GPUs, has grants on %d and is on %d", t.ID, t.Phase, t.GPUs, len(grants), places)
		}
		return l.auditGrants(t, t.Current().Grants)
	case t.Phase != model.Estimating && t.Phase != model.Held || waits != 0 || places != 0:
		return fmt.Errorf("task %d (%s) is in %d queues and on %d GPUs", t.ID, t.Phase, waits, places)
	}
	return nil
}

func (l *ledger) auditGrants(t *model.Task, grants []model.Grant) error {
	if a := t.Current(); t.GPUs == 0 || a.Host != (model.HostShare{}) {
		if h := l.host(a.Host.Node); h == nil || h.Resident(t.ID) == nil {
			return fmt.Errorf("task %d is not on the page of its machine %q", t.ID, a.Host.Node)
		}
	}
	for i, grant := range grants {
		g := l.byID[grant.GPU]
		if g == nil || g.Resident(t.ID) == nil || g.Resident(t.ID).Grant != grant.Memory {
			return fmt.Errorf("task %d has a grant on %s that is not booked there", t.ID, grant.GPU)
		}
		if g.Node != l.byID[grants[0].GPU].Node {
			return fmt.Errorf("task %d has GPUs on two machines", t.ID)
		}
		if slices.ContainsFunc(grants[:i], func(o model.Grant) bool { return o.GPU == grant.GPU }) {
			return fmt.Errorf("task %d has GPU %d twice", t.ID, g.Index)
		}
	}
	return nil
}

// AuditLaunch checks a launch of the latest step: together with the observed memory of
// other processes, the new grants fit on each of its GPUs.
func (l *ledger) AuditLaunch(d model.Launch) error {
	if h := l.host(d.Host.Node); h != nil && h.Known && (h.Booked > h.Memory || d.Host.CPUs > 0 && h.CPUsBooked > h.CPUs) {
		return fmt.Errorf("machine %q: task %d launched with %s of %s and %d of %d CPUs booked", h.Node, d.Task, h.Booked, h.Memory, h.CPUsBooked, h.CPUs)
	}
	for _, grant := range d.Grants {
		g := l.byID[grant.GPU]
		if g == nil || g.Resident(d.Task) == nil {
			return fmt.Errorf("task %d was launched on %s without a booking", d.Task, grant.GPU)
		}
		if g.MIG && len(d.Grants) > 1 {
			return fmt.Errorf("GPU %d: task %d was launched on several GPUs, and this is a part of a card", g.Index, d.Task)
		}
		if l.opt.Booking == model.BookSamples && !d.Alone { // nothing is allocated, so the limits do not matter
			if grant.Memory != 0 {
				return fmt.Errorf("GPU %d: task %d has %s booked where nothing is to be", g.Index, d.Task, grant.Memory)
			}
			continue
		}
		if g.Reserved+g.OtherProcesses+l.opt.Headroom > g.Capacity {
			return fmt.Errorf("GPU %d: task %d launched with %s reserved, %s foreign, %s headroom on %s",
				g.Index, d.Task, g.Reserved, g.OtherProcesses, l.opt.Headroom, g.Capacity)
		}
	}
	return nil
}

// auditKindLinks checks that each unfinished task with a kind is linked exactly once.
func (x *taskIndex) auditKindLinks() error {
	linked, slots := 0, 0
	for _, t := range x.tasks {
		newest := x.byKind[t.Kind]
		if newest == t && x.links.of(t).newer == nil {
			for o := t; o != nil; o = x.links.of(o).older {
				older := x.links.of(o).older
				if linked++; o.Kind != t.Kind || x.tasks[o.ID] != o || older != nil && x.links.of(older).newer != o {
					return fmt.Errorf("task %d is not linked with those of its kind", o.ID)
				}
			}
		}
		if t.Kind == "" {
			linked++
		}
		if t.Slot > 0 {
			slots++
		}
	}
	if linked != len(x.tasks) || slots != x.slots {
		return fmt.Errorf("%d of %d tasks are linked with those of their kind, %d of %d slots counted", linked, len(x.tasks), x.slots, slots)
	}
	return nil
}

// auditHosts checks the machines: the allocated memory and CPUs are the sums over the
// attempts.
func (l *ledger) auditHosts() error {
	for i, h := range l.hosts {
		if i > 0 && l.hosts[i-1].Node >= h.Node {
			return fmt.Errorf("machine %q is not where it belongs", h.Node)
		}
		if err := h.CheckSums(); err != nil {
			return err
		}
		for _, r := range h.Residents {
			t := l.tasks[r.Task]
			if t == nil || t.Alive() == nil {
				return fmt.Errorf("machine %q: holds memory for task %d, which is not placed", h.Node, r.Task)
			}
			if a := t.Alive(); a.Host.Node != h.Node || a.Host.Memory != r.Memory || a.Host.CPUs != r.CPUs || r.SuspendedMemory != t.SuspendedMemory() || r.Lent != t.LentMemory() || r.Lent < 0 || r.Lent > r.Memory || r.Memory != r.Memory.Clamp() || r.CPUs < 0 {
				return fmt.Errorf("machine %q: task %d has %s and %d CPUs booked, its attempt %+v", h.Node, r.Task, r.Memory, r.CPUs, a.Host)
			}
		}
	}
	return nil
}

// auditBacklog checks that the backlog agrees with the queue.
func (q *schedulingQueue) auditBacklog() error {
	kept := q.sums
	if !kept.valid {
		return nil
	}
	whole := q.wholeBacklog()
	for i := range whole.byRun {
		if !slices.Equal(kept.byRun[i], whole.byRun[i]) {
			return fmt.Errorf("tasks of priority class %d are in another order by run time than noted", i)
		}
	}
	if kept.work != whole.work || kept.odd != whole.odd {
		return fmt.Errorf("waiting work is %d with %d odd tasks, noted as %d with %d", whole.work, whole.odd, kept.work, kept.odd)
	}
	return nil
}
