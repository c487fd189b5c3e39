package mapper

import (
	"fmt"

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
	waiting := s.queue.WaitingTasks()
	if err := auditPlaces(s.Ledger, waiting); err != nil {
		return err
	}
	if err := s.queue.Audit(); err != nil {
		return err
	}
	if err := s.AuditKindLinks(); err != nil {
		return err
	}
	if err := s.AuditCeiling(); err != nil {
		return err
	}
	if err := s.users.AuditUsers(s.queue.WaitingList()); err != nil {
		return err
	}
	for _, g := range s.GPUList() {
		if g.NominatedFor != 0 && (waiting[g.NominatedFor] == 0 || !s.Ledger.Options().Preempts()) {
			return fmt.Errorf("GPU %d: kept for task %d, which does not wait", g.Index, g.NominatedFor)
		}
	}
	if h := s.reserve.Head(); (len(h.GPUs) > 0 || h.Host != nil) && waiting[h.Task] == 0 {
		return fmt.Errorf("GPUs are kept free for task %d, which does not wait", h.Task)
	}
	return nil
}

// auditPlaces checks that the ledger, the tasks and the queues agree about where each
// task is.
func auditPlaces(l *ledger.Ledger, waiting map[model.TaskID]int) error {
	places := map[model.TaskID]int{}
	for i, g := range l.GPUList() {
		if l.GPU(g.ID) != g || g.Pos() != i || i > 0 && ledger.CompareGPUs(l.GPUList()[i-1], g) >= 0 {
			return fmt.Errorf("GPU %d (%s) is not where it belongs in the ledger", g.Index, g.ID)
		}
		if err := l.AuditGPU(g); err != nil {
			return err
		}
		for _, r := range g.Residents {
			places[r.Task]++
		}
	}
	if err := l.AuditHosts(); err != nil {
		return err
	}
	for _, t := range l.TaskList() {
		if err := l.AuditTask(t, places[t.ID], waiting[t.ID]); err != nil {
			return err
		}
	}
	return nil
}
