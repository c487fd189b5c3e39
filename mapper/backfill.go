package mapper

import "time"

// Where GPUs are held for a task on several, tasks on one GPU that the driver can suspend
// may run there beyond the time for which they are held. They fill them: they are
// suspended when the other could start but for them.

// ReasonFilled: it filled a GPU that was held for Task, which starts now; for Span now.
// ReasonFills: it fills GPU, which is held for Task.
const (
	ReasonFilled ReasonCode = "filled"
	ReasonFills  ReasonCode = "fills"
)

// fillLeast is how much longer GPUs are expected to be held, at least, when a task comes
// to fill them.
const fillLeast = 2 * time.Minute

// backfills reports whether a task may fill a GPU that is held for another.
func (s *State) backfills(t *Task, g *GPU) bool {
	held := s.tasks[s.reservedForHead(g)]
	switch {
	case !s.opt.FillHeld || held == nil || held.GPUs < 2 || held.Unfilled || t.Priority > held.Priority:
		return false
	case t.GPUs != 1 || t.Terminal || t.Phase == Suspended || t.Last() != nil && t.Last().Stays:
		return false
	case g.Suspend == SuspendNever || g.SuspendAlone && !t.NextExclusive:
		return false
	case s.head.Until != 0 && s.now.Add(fillLeast) > s.head.Until:
		return false
	}
	return s.canFreeHeld(held, t, g)
}

// canFreeHeld reports whether the host memory of a machine would hold a task, what those
// have that fill the GPUs there, and what one more would.
func (s *State) canFreeHeld(held, t *Task, g *GPU) bool {
	h := s.host(g.Node)
	if h == nil || !h.Known {
		return true
	}
	share, _ := s.hostFits(held, h)
	sum := share.Memory + t.needs(g)
	for _, at := range s.machineOf(g) {
		for i := range at.Residents {
			if r := &at.Residents[i]; s.vacatesHeld(held, r) {
				sum = (sum + r.taken()).Clamp()
			}
		}
	}
	return sum.Clamp() <= h.free()
}

// backfillsFor is the task for which the GPU is held that a task is launched on; 0: it is
// held for none, or for one that this one may overtake, or ends before.
func (s *State) backfillsFor(t *Task, gpus []*GPU) TaskID {
	if !s.opt.FillHeld || len(gpus) != 1 {
		return 0
	}
	g := gpus[0]
	if id := s.reservedForHead(g); id != 0 && id != t.ID && s.overtakesOn(t, id, g) {
		return id
	}
	return 0
}

// heldFreed reports whether those that fill GPUs may be suspended for a waiting task: GPUs
// are held for it.
func (s *State) heldFreed(t *Task) bool {
	return s.opt.FillHeld && t.GPUs > 1 && s.head.Task == t.ID && t.Phase != Suspended
}

// vacatesHeld reports whether a resident of a GPU is suspended when a task on several can
// start but for it.
func (s *State) vacatesHeld(t *Task, r *Resident) bool {
	v := s.tasks[r.Task]
	return s.opt.FillHeld && t.GPUs > 1 && v.Phase.Placed() && v.backfilling() && v.Priority <= t.Priority
}

// backfilling reports whether a placed task fills a GPU, and leaves that when it is told to.
func (t *Task) backfilling() bool {
	return t.Last().Fills != 0 && !t.Last().Stays && t.Phase != Stopping
}

// canBackfill is for whom a running task leaves its GPU; the zero Reason: for nobody.
func (s *State) canBackfill(t *Task) Reason {
	if t.Phase != Running || !t.backfilling() {
		return Reason{}
	}
	g := s.byID[t.Current().Grants[0].GPU]
	held := s.tasks[s.reservedForHead(g)]
	if held == nil || !s.vacatesHeld(held, g.resident(t.ID)) {
		return Reason{}
	}
	return Reason{Code: ReasonFills, Task: held.ID, GPU: g.Index}
}

// cannotBackfill follows that a task that filled a GPU could not be suspended: nobody else
// comes to fill those that are held for that one.
func (s *State) cannotBackfill(why Reason) {
	if held := s.tasks[why.Task]; held != nil {
		held.Unfilled = true
	}
}
