package mapper

import (
	"fmt"

	"carma/mapper/model"
)

// sound returns an inconsistency of the state or of its cache: of the cached states of
// the GPUs, and of one of the waiting tasks.
func (s *State) sound() error {
	if err := s.Audit(); err != nil {
		return err
	}
	if err := s.looksWrong(); err != nil {
		return err
	}
	if waiting := s.inLine(); len(waiting) > 0 {
		return s.recallsWrong(waiting[uint64(s.Now())%uint64(len(waiting))])
	}
	return nil
}

// overlooked returns a wrong cached result. It recomputes all of them, for each GPU and
// each waiting task.
func (s *State) overlooked() error {
	if err := s.looksWrong(); err != nil {
		return err
	}
	for _, t := range s.inLine() {
		if err := s.recallsWrong(t); err != nil {
			return err
		}
	}
	return nil
}

// inLine returns the waiting tasks, in queue order.
func (s *State) inLine() (all []*model.Task) {
	all = append(all, s.queue.WaitingList()...)
	return all
}

// looksWrong returns a wrong cached result about a GPU.
func (s *State) looksWrong() error {
	for _, g := range s.GPUList() {
		for i := range g.Residents {
			if at := g.Residents[i].ShrinkAt; at > 0 && at < s.NextGrantCheck() {
				return fmt.Errorf("GPU %s: a grant is looked at from %d, and none before %d", g.ID, at, s.NextGrantCheck())
			}
		}
	}
	return s.placer.AuditGPUs()
}

// recallsWrong returns a wrong cached result for a waiting task.
func (s *State) recallsWrong(t *model.Task) error {
	if err := s.AuditFit(t); err != nil {
		return err
	}
	return s.placer.AuditTask(t)
}
