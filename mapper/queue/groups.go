package queue

import "carma/mapper/model"

// group counts the unfinished tasks of one group name. Tasks over its limit are held:
// they use nothing and delay no other task.
type group struct {
	members int  // unfinished
	active  int  // of these, queued or placed
	line    Line // tasks held only by the limit, in order of number
}

// AddToGroup adds a new task to its group.
func (q *Queue) AddToGroup(t *model.Task) {
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

// HoldForGroup holds a task for the limit of its group. It returns false if there is no limit.
func (q *Queue) HoldForGroup(t *model.Task) bool {
	g := q.groups[t.Group]
	if g == nil || t.Parallel <= 0 {
		return false
	}
	g.line.Add(t)
	return true
}

// NextOfGroup removes and returns the next task that is held only for the limit of a
// group, or nil if the limit is reached or no task is held for it.
func (q *Queue) NextOfGroup(group string) *model.Task {
	g := q.groups[group]
	if g == nil || g.line.Len() == 0 || g.active >= g.line.At(0).Parallel {
		return nil
	}
	t := g.line.At(0)
	g.line.Remove(0)
	return t
}

// LeaveGroupLine ends that a task is held for the limit of its group.
func (q *Queue) LeaveGroupLine(t *model.Task) {
	if g := q.groups[t.Group]; g != nil {
		g.leaveLine(t)
	}
}

// CountActive counts a task of a group as queued or placed (1), or no longer (-1).
func (q *Queue) CountActive(t *model.Task, n int) {
	if g := q.groups[t.Group]; g != nil {
		g.active += n
	}
}

// LeaveGroup removes a task that ends from its group. was is its last phase before.
func (q *Queue) LeaveGroup(t *model.Task, was model.Phase) {
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

// Rebuild computes the groups and followers from the tasks, which must come in
// order of number.
func (q *Queue) Rebuild(tasks []*model.Task) {
	q.groups, q.followers = map[string]*group{}, map[model.TaskID][]model.TaskID{}
	for _, t := range tasks {
		q.AddToGroup(t)
		if g := q.groups[t.Group]; g != nil {
			if t.Phase.Active() {
				g.active++
			}
			if t.Phase == model.Held && t.Ready() && t.Parallel > 0 {
				g.line.Add(t)
			}
		}
		for _, d := range t.Waits {
			q.followers[d.Task] = append(q.followers[d.Task], t.ID)
		}
	}
}

// tally is the sum over the tasks of a group.
type tally struct{ members, active, lined int }

// leaveLine removes a task from the line of its group, if it is there.
func (g *group) leaveLine(t *model.Task) {
	if i, ok := g.line.find(t); ok && g.line.At(i) == t {
		g.line.Remove(i)
	}
}
