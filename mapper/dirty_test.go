package mapper

import (
	"fmt"
	"slices"

	"carma/internal/units"
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
		return s.recallsWrong(waiting[s.placer.cache.clock%len(waiting)])
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

// looksWrong returns a wrong cached state of a GPU. A GPU that is marked or due is
// checked in the next cycle.
func (s *State) looksWrong() error {
	for _, g := range s.GPUList() {
		for i := range g.Residents {
			if at := g.Residents[i].ShrinkAt; at > 0 && at < s.NextGrantCheck() {
				return fmt.Errorf("GPU %s: a grant is looked at from %d, and none before %d", g.ID, at, s.NextGrantCheck())
			}
		}
	}
	l := &s.placer.cache.dirty
	if !l.valid {
		return nil
	}
	var free []units.Bytes
	idle, due := 0, false
	for _, g := range s.GPUList() {
		n := &cacheOf(g).dirty
		if n.all != l || n.marked != slices.Contains(l.marked, g) || l.due[n.place] != g {
			return fmt.Errorf("GPU %s is not kept as it should be", g.ID)
		}
		if n.open.Open {
			free = append(free, n.open.FreeMemory)
		}
		if n.open.Idle {
			idle++
		}
		if fresh := cacheOf(g).changedAt >= l.since; fresh != slices.Contains(l.recent, g) {
			return fmt.Errorf("GPU %s is fresh: %v, and among the recent ones: %v", g.ID, fresh, !fresh)
		}
		if short := s.ShortOfMemory(g); short && !n.marked && !slices.Contains(l.short, g) {
			return fmt.Errorf("GPU %s is short of memory, and not kept as such", g.ID)
		}
		if due = due || n.due <= s.Now(); n.marked || n.due <= s.Now() {
			continue
		}
		if f := s.placer.gpuState(g); f != cacheOf(g).state {
			return fmt.Errorf("GPU %s looks like %+v and was last seen as %+v", g.ID, f, cacheOf(g).state)
		}
		if o := s.OpenState(g); o != n.open {
			return fmt.Errorf("GPU %s is open: %+v, and counted as %+v", g.ID, o, n.open)
		}
	}
	slices.Sort(free)
	if !slices.Equal(free, l.free) || idle != l.idle {
		return fmt.Errorf("open GPUs have %v, %d idle, and are kept as %v, %d idle", free, idle, l.free, l.idle)
	}
	if !slices.IsSortedFunc(l.recent, comparePos) || len(slices.Compact(slices.Clone(l.recent))) < len(l.recent) {
		return fmt.Errorf("the recent GPUs are not in order, each once")
	}
	if due {
		return nil
	}
	for _, p := range []*cycle{{}, {favoured: &model.Task{}}} {
		got := s.placer.freeSummary(p)
		l.valid = false
		want := s.placer.freeSummary(p)
		if l.valid = true; got != want {
			return fmt.Errorf("a survey of what is kept is %+v, of all GPUs %+v", got, want)
		}
	}
	return nil
}

// recallsWrong returns a wrong cached result for a waiting task.
func (s *State) recallsWrong(t *model.Task) error {
	if err := s.AuditFit(t); err != nil {
		return err
	}
	for _, g := range s.unasked(t) {
		if s.placer.reject(t, g) == "" {
			return fmt.Errorf("GPU %s, which would not be asked, takes task %d", g.ID, t.ID)
		}
	}
	if !s.placer.predicts() || t.GPUs == 0 {
		return nil
	}
	for _, g := range s.GPUList() {
		was := cacheOf(g).ready
		for _, before := range []units.Instant{units.Never, was.at} {
			cacheOf(g).ready = was
			got := s.placer.readyAt(t, g, before)
			cacheOf(g).ready = gpuReadyTime{}
			if want := s.placer.readyAt(t, g, before); min(got, before) != min(want, before) {
				return fmt.Errorf("GPU %s is ready for task %d at %d, by what is kept at %d, of those before %d", g.ID, t.ID, want, got, before)
			}
		}
		cacheOf(g).ready = was
	}
	return nil
}

// unasked returns the GPUs that are skipped for a task because they have rejected an
// equal request.
func (s *State) unasked(t *model.Task) (all []*model.GPU) {
	at, but := s.placer.cachedRejection(t)
	if at == 0 || s.reserve.Any() {
		return nil
	}
	for _, g := range s.GPUList() {
		if l := &cacheOf(g).dirty; cacheOf(g).changedAt <= at && !l.marked && l.due > s.Now() && !slices.Contains(but, g.ID) {
			all = append(all, g)
		}
	}
	return all
}
