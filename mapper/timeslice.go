package mapper

import (
	"cmp"
	"slices"
	"time"

	"carma/internal/units"
)

// slot returns the time for which an attempt of a task may run while others wait, or 0
// for no limit.
func (s *State) slot(t *Task) time.Duration {
	if t.Slot == 0 || s.opt.Slot == 0 {
		return max(t.Slot, s.opt.Slot)
	}
	return min(t.Slot, s.opt.Slot)
}

// slotEnds returns the instant at which the slot of a running attempt is used up.
func (s *State) slotEnds(t *Task) units.Instant {
	slot := s.slot(t)
	if slot <= 0 || t.Phase != Running {
		return units.Never
	}
	a := t.Last()
	ends := a.slotBegan().Add(slot)
	if s.opt.SuspendSlots {
		ends = max(ends, s.restedAt(a))
	}
	return ends
}

// slotBegan returns the begin of the slot of a running attempt, plus the time for which
// it was suspended since.
func (a *Attempt) slotBegan() units.Instant { return max(a.Started, a.Turn).Add(a.SuspendedTime) }

// watchSlots sets timers for the ends of the slots of running tasks.
func (s *State) watchSlots() {
	for _, g := range s.gpus {
		for i := range g.Residents {
			if ends := s.slotEnds(s.tasks[g.Residents[i].Task]); ends > s.now {
				s.at(ends, timer{})
			}
		}
	}
	for _, t := range s.bare() {
		if ends := s.slotEnds(t); ends > s.now {
			s.at(ends, timer{})
		}
	}
}

// checkSlot rejects a slot that is longer than the server's.
func (s *State) checkSlot(slot time.Duration) *ImpossibleError {
	if s.opt.Slot > 0 && slot > s.opt.Slot {
		return &ImpossibleError{"slot", Reason{Code: ReasonSlotTooLong, Span: slot, Most: s.opt.Slot}}
	}
	return nil
}

// rotate stops or suspends tasks whose slot is used up, for the tasks that wait: as few
// as the first waiting task needs, then the next. Memory of tasks that are being stopped
// or suspended already counts as free, so no two tasks are stopped for the same room.
func (s *State) rotate(blocked []*Task) {
	if len(blocked) == 0 || !s.anySlotOver() {
		return
	}
	after := &timeslice{s: s, promised: map[string]promised{}}
	for _, g := range s.gpus {
		v := g.clone()
		for _, r := range g.Residents {
			if p := s.tasks[r.Task].Phase; p == Stopping || p == Suspending {
				v.leave(r.Task)
			}
		}
		after.gpus = append(after.gpus, v)
	}
	kept := s.queue.head
	defer func() { s.queue.head = kept }()
	for _, t := range blocked {
		victims, fits := after.makeRoom(t)
		if fits && t.ID == s.queue.head.Task {
			s.queue.head = headReservation{} // its GPUs are open to others once it runs
		}
		for _, id := range victims {
			victim := s.tasks[id]
			why := Reason{Code: ReasonSlotUsed, Span: s.slot(victim)}
			if !s.queue.hostAllows(t, victim) || !s.preemptTask(victim, why) {
				s.stopVictim(victim, why)
			}
		}
	}
}

// hostAllows reports whether a task has host memory while a victim is suspended for it.
func (q *schedulingQueue) hostAllows(t, victim *Task) bool {
	h := q.host(victim.Last().Host.Node)
	if t.GPUs == 0 || h == nil || !h.Known {
		return t.GPUs > 0
	}
	return q.hostHolds(t, h, victim)
}

func (s *State) anySlotOver() bool {
	if s.opt.Slot <= 0 && s.slots == 0 {
		return false
	}
	for _, g := range s.gpus {
		for i := range g.Residents {
			if s.slotEnds(s.tasks[g.Residents[i].Task]) <= s.now {
				return true
			}
		}
	}
	return slices.ContainsFunc(s.bare(), func(t *Task) bool { return s.slotEnds(t) <= s.now })
}

// timeslice is the ledger as it will be when the stopped tasks have gone and the tasks
// for which they stop have started.
type timeslice struct {
	s        *State
	gpus     []*GPU
	promised map[string]promised // of each machine, look-up only
}

// makeRoom makes room for a waiting task and returns the tasks to stop.
func (r *timeslice) makeRoom(t *Task) (victims []TaskID, fits bool) {
	switch {
	case t.GPUs == 0:
		return r.hostVictims(t)
	case !r.couldFitHost(t):
		return nil, false
	}
	return r.admit(t)
}

// admit makes room for a waiting task and returns the tasks to stop. If stopping
// would not help, it changes nothing and returns false.
func (r *timeslice) admit(t *Task) (victims []TaskID, fits bool) {
	var options []freedSlot
	for i, g := range r.gpus {
		if victims, ok := r.room(t, g); ok {
			options = append(options, freedSlot{r.s.gpus[i], g, victims})
		}
	}
	var picked []freedSlot
	for _, node := range r.nodes(options, t.GPUs) {
		slices.SortStableFunc(node, func(a, b freedSlot) int { return cmp.Compare(len(a.victims), len(b.victims)) })
		node = node[:t.GPUs]
		if picked == nil || stops(node) < stops(picked) {
			picked = node
		}
	}
	for _, o := range picked {
		for _, id := range o.victims {
			if !slices.Contains(victims, id) {
				victims = append(victims, id)
			}
		}
	}
	for _, id := range victims {
		for _, g := range r.gpus {
			g.leave(id)
		}
	}
	for _, o := range picked { // no resident is added: the policies look up the progress of residents
		taken := t.needs(o.then)
		if r.s.alone(t) {
			taken = o.then.Capacity
		}
		o.then.OtherProcesses, o.then.Used = o.then.OtherProcesses+taken, o.then.Used+taken
		o.then.settle()
	}
	return victims, picked != nil
}

// freedSlot is a GPU to which a task could go, with the tasks that must leave it first.
type freedSlot struct {
	now, then *GPU
	victims   []TaskID
}

func stops(all []freedSlot) int {
	n := 0
	for _, o := range all {
		n += len(o.victims)
	}
	return n
}

// nodes returns the options of each machine that has at least n.
func (r *timeslice) nodes(all []freedSlot, n int) [][]freedSlot {
	var nodes [][]freedSlot
	for len(all) > 0 {
		m := 1
		for m < len(all) && all[m].now.Node == all[0].now.Node {
			m++
		}
		if m >= n {
			nodes = append(nodes, all[:m:m])
		}
		all = all[m:]
	}
	return nodes
}

// room returns the tasks that must leave a GPU for t to fit, the longest running first,
// or false if t would not fit even then.
func (r *timeslice) room(t *Task, g *GPU) ([]TaskID, bool) {
	s := r.s
	if s.placer.reject(t, g) == "" {
		return nil, true
	}
	var over []*Task
	for i := range g.Residents {
		v := s.tasks[g.Residents[i].Task]
		if s.slotEnds(v) <= s.now && s.queue.waiting.before(t, s.rotated(v)) {
			over = append(over, v)
		}
	}
	slices.SortFunc(over, func(a, b *Task) int {
		return cmp.Or(cmp.Compare(a.Last().slotBegan(), b.Last().slotBegan()), cmp.Compare(a.ID, b.ID))
	})
	then := g.clone()
	for i, v := range over {
		then.leave(v.ID)
		if s.placer.reject(t, then) == "" {
			ids := make([]TaskID, i+1)
			for j := range ids {
				ids[j] = over[j].ID
			}
			return ids, true
		}
	}
	return nil, false
}

// rotated returns a copy of a running task as it would wait after its slot. If the copy
// goes before a waiting task, the running task does not stop for that one.
func (s *State) rotated(t *Task) *Task {
	c := *t
	s.queue.toTheBack(&c)
	c.Phase = Queued
	c.Rank = s.queue.rankOf(&c)
	return &c
}

// toTheBack puts a task behind all tasks submitted up to now.
func (q *schedulingQueue) toTheBack(t *Task) { t.Behind, t.QueuedAt = q.lastID, q.now }

// leave removes a task from a copy of a GPU. It assumes that the tasks there contribute
// equally to the monitor's scores.
func (g *GPU) leave(id TaskID) {
	n := len(g.Residents)
	if r := g.resident(id); r != nil {
		g.Used = max(g.OtherProcesses, g.Used-r.Used)
	}
	g.remove(id)
	g.forget()
	if left := len(g.Residents); left < n {
		part := float64(left) / float64(n)
		g.SMACT, g.SMOCC, g.DRAMA = g.SMACT*part, g.SMOCC*part, g.DRAMA*part
	}
}

// slotOver requeues a task after its attempt was stopped for others.
func (s *State) slotOver(t *Task, a *Attempt) {
	reason := t.StopReason
	a.NotAtFault = true
	t.SlotUsed, t.StopReason = false, Reason{}
	s.queue.toTheBack(t)
	s.requeue(t, Queued, reason)
}
