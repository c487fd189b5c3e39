package queue

import (
	"fmt"
	"slices"

	"carma/mapper/model"
)

// AuditBacklog checks that the backlog agrees with the queue.
func (q *Queue) AuditBacklog() error {
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

// auditHeld checks that each held task has a reason to be held, and that its followers
// are known.
func (q *Queue) auditHeld() error {
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
		if c := (tally{g.members, g.active, g.line.Len()}); c != counted[name] {
			return fmt.Errorf("group %s is kept as %+v, its tasks come to %+v", name, c, counted[name])
		}
		if err := q.auditLine(name, g); err != nil {
			return err
		}
	}
	return nil
}

func (q *Queue) auditWaits(t *model.Task) error {
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
		if of == nil || d.Task >= t.ID || !slices.Contains(model.Conditions, d.Condition) || d.Condition == model.AfterStarted && of.HasStarted() {
			return fmt.Errorf("task %d waits for task %d to come as far as %q, which it cannot any more", t.ID, d.Task, d.Condition)
		}
		if _, known := slices.BinarySearch(q.followers[d.Task], t.ID); !known {
			return fmt.Errorf("task %d waits for task %d, which does not know", t.ID, d.Task)
		}
	}
	return nil
}

func (q *Queue) auditLine(name string, g *group) error {
	for i, t := range g.line.Waiting() {
		if t.Phase != model.Held || !t.Ready() || t.Group != name || q.TaskByID(t.ID) != t || i > 0 && g.line.At(i-1).ID >= t.ID {
			return fmt.Errorf("task %d (%s) does not belong in the line of group %s", t.ID, t.Phase, name)
		}
	}
	if g.line.Len() > 0 && g.active < g.line.At(0).Parallel {
		return fmt.Errorf("task %d is held by the limit of group %s, of which %d are under way", g.line.At(0).ID, name, g.active)
	}
	return nil
}

// Audit returns the first inconsistency of the queue.
func (q *Queue) Audit() error {
	if err := q.auditHeld(); err != nil {
		return err
	}
	if err := q.AuditBacklog(); err != nil {
		return err
	}
	for i := range q.waiting.lanes {
		for _, t := range q.waiting.lanes[i].Waiting() {
			if LaneOf(t) != i {
				return fmt.Errorf("task %d is in the wrong queue", t.ID)
			}
		}
	}
	return q.waiting.audit()
}
