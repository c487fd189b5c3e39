package mapper

import (
	"cmp"
	"fmt"
	"slices"

	"carma/mapper/model"
)

// group counts the unfinished tasks of one group name. Tasks over its limit are held:
// they use nothing and delay no other task.
type group struct {
	members int  // unfinished
	active  int  // of these, queued or placed
	line    line // tasks held only by the limit, in order of number
}

// enrol adds a new task to its group.
func (q *schedulingQueue) enrol(t *model.Task) {
	if t.Group == "" {
		return
	}
	g := q.groups[t.Group]
	if g == nil {
		g = &group{}
		q.groups[t.Group] = g
	}
	g.members++
}

// admit queues a task without unmet dependencies. If its group is at its limit, the task
// is held until the group has room.
func (s *State) admit(t *model.Task) {
	if !s.queue.addToLine(t) {
		s.queueUp(t)
		return
	}
	s.advance(t.Group)
	if t.Phase == model.Estimating {
		t.Phase = model.Held
	}
}

// advance queues the held tasks that the limit of a group allows, in order of
// number.
func (s *State) advance(group string) {
	for t := s.queue.takeFromLine(group); t != nil; t = s.queue.takeFromLine(group) {
		s.queueUp(t)
	}
}

// queueUp queues a task, with the memory estimate learned while it was held.
func (s *State) queueUp(t *model.Task) {
	s.queue.countActive(t, 1)
	if t.Phase == model.Held {
		if len(t.Attempts) == 0 { // else it has learned what it needs
			s.learner.appraise(t)
		}
		s.Decide(model.Release{Task: t.ID})
	}
	back := cmp.Or(t.Back, model.Queued)
	t.Back = ""
	s.enqueue(t, back)
}

// addToLine holds a task for the limit of its group. It returns false if there is no limit.
func (q *schedulingQueue) addToLine(t *model.Task) bool {
	g := q.groups[t.Group]
	if g == nil || t.Parallel <= 0 {
		return false
	}
	g.line.add(t)
	return true
}

// takeFromLine removes and returns the next task that is held only for the limit of a
// group, or nil if the limit is reached or no task is held for it.
func (q *schedulingQueue) takeFromLine(group string) *model.Task {
	g := q.groups[group]
	if g == nil || g.line.len() == 0 || g.active >= g.line.at(0).Parallel {
		return nil
	}
	t := g.line.at(0)
	g.line.remove(0)
	return t
}

// leaveLine ends that a task is held for the limit of its group.
func (q *schedulingQueue) leaveLine(t *model.Task) {
	if g := q.groups[t.Group]; g != nil {
		g.leaveLine(t)
	}
}

// countActive counts a task of a group as queued or placed (1), or no longer (-1).
func (q *schedulingQueue) countActive(t *model.Task, n int) {
	if g := q.groups[t.Group]; g != nil {
		g.active += n
	}
}

// leaveGroup removes a task that ends from its group. was is its last phase before.
func (q *schedulingQueue) leaveGroup(t *model.Task, was model.Phase) {
	g := q.groups[t.Group]
	if g == nil {
		return
	}
	g.members--
	if was.Active() {
		g.active--
	}
	g.leaveLine(t)
	if g.members == 0 {
		delete(q.groups, t.Group)
	}
}

// regroup computes the groups and followers from the tasks, which must come in
// order of number.
func (q *schedulingQueue) regroup(tasks []*model.Task) {
	q.groups, q.followers = map[string]*group{}, map[model.TaskID][]model.TaskID{}
	for _, t := range tasks {
		q.enrol(t)
		if g := q.groups[t.Group]; g != nil {
			if t.Phase.Active() {
				g.active++
			}
			if t.Phase == model.Held && t.Ready() && t.Parallel > 0 {
				g.line.add(t)
			}
		}
		for _, d := range t.Waits {
			q.followers[d.Task] = append(q.followers[d.Task], t.ID)
		}
	}
}

// auditHeld checks that each held task has a reason to be held, and that its followers
// are known.
func (q *schedulingQueue) auditHeld() error {
	counted := map[string]tally{}
	for _, t := range q.TaskList() {
		if err := q.auditWaits(t); err != nil {
			return err
		}
		if t.Group == "" {
			continue
		}
		c := counted[t.Group]
		c.members++
		if t.Phase.Active() {
			c.active++
		}
		if t.Phase == model.Held && t.Ready() {
			c.lined++
		}
		counted[t.Group] = c
	}
	if len(counted) != len(q.groups) {
		return fmt.Errorf("%d groups have tasks, %d are kept", len(counted), len(q.groups))
	}
	for name, g := range q.groups {
		if c := (tally{g.members, g.active, g.line.len()}); c != counted[name] {
			return fmt.Errorf("group %s is kept as %+v, its tasks come to %+v", name, c, counted[name])
		}
		if err := q.auditLine(name, g); err != nil {
			return err
		}
	}
	return nil
}

// tally is the sum over the tasks of a group.
type tally struct{ members, active, lined int }

func (q *schedulingQueue) auditWaits(t *model.Task) error {
	switch {
	case t.Phase.Active() && !t.Ready() && !(t.HeldWhileSuspended() && len(t.Waits) == 0 && t.Due == 0):
		return fmt.Errorf("task %d is %s and waits for %v until %d", t.ID, t.Phase, t.Waits, t.Due)
	case t.Phase == model.Held && t.Ready() && (t.Group == "" || t.Parallel <= 0):
		return fmt.Errorf("task %d is held for nothing", t.ID)
	case t.Due < 0:
		return fmt.Errorf("task %d has a delay until %d", t.ID, t.Due)
	}
	for _, d := range t.Waits {
		of := q.TaskByID(d.Task)
		if of == nil || d.Task >= t.ID || !slices.Contains(Conditions, d.Condition) || d.Condition == model.AfterStarted && of.HasStarted() {
			return fmt.Errorf("task %d waits for task %d to come as far as %q, which it cannot any more", t.ID, d.Task, d.Condition)
		}
		if _, known := slices.BinarySearch(q.followers[d.Task], t.ID); !known {
			return fmt.Errorf("task %d waits for task %d, which does not know", t.ID, d.Task)
		}
	}
	return nil
}

func (q *schedulingQueue) auditLine(name string, g *group) error {
	for i, t := range g.line.waiting() {
		if t.Phase != model.Held || !t.Ready() || t.Group != name || q.TaskByID(t.ID) != t || i > 0 && g.line.at(i-1).ID >= t.ID {
			return fmt.Errorf("task %d (%s) does not belong in the line of group %s", t.ID, t.Phase, name)
		}
	}
	if g.line.len() > 0 && g.active < g.line.at(0).Parallel {
		return fmt.Errorf("task %d is held by the limit of group %s, of which %d are under way", g.line.at(0).ID, name, g.active)
	}
	return nil
}

// leaveLine removes a task from the line of its group, if it is there.
func (g *group) leaveLine(t *model.Task) {
	if i, ok := g.line.find(t); ok && g.line.at(i) == t {
		g.line.remove(i)
	}
}
