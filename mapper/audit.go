package mapper

import (
	"fmt"
	"slices"

	"carma/mapper/ledger"
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
	if err := s.queue.audit(); err != nil {
		return err
	}
	if err := s.AuditKindLinks(); err != nil {
		return err
	}
	if err := s.AuditCeiling(); err != nil {
		return err
	}
	if err := s.users.AuditUsers(s.queue.waitingList()); err != nil {
		return err
	}
	for _, g := range s.GPUList() {
		if g.NominatedFor != 0 && (waiting[g.NominatedFor] == 0 || !s.Ledger.Options().Preempts()) {
			return fmt.Errorf("GPU %d: kept for task %d, which does not wait", g.Index, g.NominatedFor)
		}
	}
	if h := s.reserve.headReservation(); (len(h.GPUs) > 0 || h.Host != nil) && waiting[h.Task] == 0 {
		return fmt.Errorf("GPUs are kept free for task %d, which does not wait", h.Task)
	}
	return nil
}

// waitingList returns the waiting tasks of all queues.
func (q *schedulingQueue) waitingList() (all []*model.Task) {
	for i := range q.waiting.lanes {
		all = append(all, q.waiting.lanes[i].waiting()...)
	}
	return all
}

// waitingTasks counts for each task the queues that have it.
func (q *schedulingQueue) waitingTasks() map[model.TaskID]int {
	waiting := map[model.TaskID]int{}
	for _, t := range q.waitingList() {
		waiting[t.ID]++
	}
	return waiting
}

// auditPlaces checks that the ledger, the tasks and the queues agree about where each
// task is.
func (s *State) auditPlaces(waiting map[model.TaskID]int) error {
	places := map[model.TaskID]int{}
	for i, g := range s.GPUList() {
		if s.GPU(g.ID) != g || g.Pos() != i || i > 0 && ledger.CompareGPUs(s.GPUList()[i-1], g) >= 0 {
			return fmt.Errorf("GPU %d (%s) is not where it belongs in the ledger", g.Index, g.ID)
		}
		if err := s.AuditGPU(g); err != nil {
			return err
		}
		for _, r := range g.Residents {
			places[r.Task]++
		}
	}
	if err := s.AuditHosts(); err != nil {
		return err
	}
	for _, t := range s.TaskList() {
		if err := s.AuditTask(t, places[t.ID], waiting[t.ID]); err != nil {
			return err
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
