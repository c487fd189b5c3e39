package queue

import (
	"slices"
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/fairshare"
	"carma/mapper/ledger"
	"carma/mapper/model"
	"carma/mapper/predict"
)

// begin returns an empty queue with options.
func begin(opt model.Options) *Queue {
	l := ledger.New(opt, false)
	l.Begin(units.Instant(time.Hour))
	return New(l, fairshare.New(l), predict.New(l))
}

// wait adds a waiting task.
func (q *Queue) wait(r model.Request) *model.Task {
	t := &model.Task{Request: r, Phase: model.Queued, Submitted: q.Now(), QueuedAt: q.Now()}
	q.AddTask(t)
	q.AddToGroup(t)
	t.Rank = q.RankOf(t)
	q.Add(t)
	q.UpdateBacklog(t)
	return t
}

func ids(tasks []*model.Task) (all []model.TaskID) {
	for _, t := range tasks {
		all = append(all, t.ID)
	}
	return all
}

// TestOrder checks that recovery goes before the main queue, then the priority, then the
// expected run time, and that the audit notices a task that is in the wrong lane.
func TestOrder(t *testing.T) {
	q := begin(model.Options{Order: model.OrderSJF})
	long := q.wait(model.Request{ID: 1, GPUs: 4})
	short := q.wait(model.Request{ID: 2, GPUs: 1})
	high := q.wait(model.Request{ID: 3, GPUs: 1, Priority: model.High})
	again := &model.Task{Request: model.Request{ID: 4, GPUs: 1}, Phase: model.Recovering}
	q.AddTask(again)
	q.Add(again)
	if got, want := ids(q.WaitingList()), []model.TaskID{4, 3, 2, 1}; !slices.Equal(got, want) {
		t.Errorf("order %v, want %v", got, want)
	}
	if q.PositionOf(short) != 3 || q.Place(short) != 2 || !q.Before(high, long) || q.Before(long, short) {
		t.Errorf("task 2 is at %d, in its queue at %d", q.PositionOf(short), q.Place(short))
	}
	if err := q.Audit(); err != nil {
		t.Error(err)
	}
	high.Priority = model.Low
	if err := q.Audit(); err == nil {
		t.Error("a task in the wrong lane is not noticed")
	}
}

// TestGroupLimit checks that a group's held tasks are taken in order of number, as many as
// its limit allows, and that the audit compares the counts with the tasks.
func TestGroupLimit(t *testing.T) {
	q := begin(model.Options{})
	var all []*model.Task
	for id := range model.TaskID(3) {
		task := &model.Task{Request: model.Request{ID: 3 - id, Group: "g", Parallel: 1}, Phase: model.Held}
		q.AddTask(task)
		q.AddToGroup(task)
		if !q.HoldForGroup(task) {
			t.Fatal("the group has no limit")
		}
		all = append(all, task)
	}
	first := q.NextOfGroup("g")
	if first == nil || first.ID != 1 {
		t.Fatalf("the first one is %+v", first)
	}
	first.Phase = model.Queued
	q.CountActive(first, 1)
	if next := q.NextOfGroup("g"); next != nil {
		t.Errorf("task %d is taken beyond the limit", next.ID)
	}
	if err := q.Audit(); err != nil {
		t.Error(err)
	}
	q.RemoveTask(first)
	q.LeaveGroup(first, model.Running)
	q.LeaveGroupLine(all[1]) // task 2 is stopped
	if next := q.NextOfGroup("g"); next == nil || next.ID != 3 {
		t.Errorf("after the end of the first and the stop of the second: %+v", next)
	}
}

// TestFollowers checks that followers are kept in order of number, and that the audit
// notices a task that its predecessor does not know.
func TestFollowers(t *testing.T) {
	q := begin(model.Options{})
	first := q.wait(model.Request{ID: 1})
	var last *model.Task
	for _, id := range []model.TaskID{4, 2, 3} {
		last = &model.Task{Request: model.Request{ID: id}, Phase: model.Held, Waits: []model.Dependency{{Task: 1, Condition: model.AfterOK}}}
		q.AddTask(last)
		q.Follow(last, last.Waits)
	}
	if got := q.FollowersOf(first.ID); !slices.Equal(got, []model.TaskID{2, 3, 4}) {
		t.Errorf("followers %v", got)
	}
	if rule, why := q.HeldBy(last); rule != model.RuleAfter || why.Task != 1 {
		t.Errorf("task 3 is held by %s: %+v", rule, why)
	}
	if err := q.Audit(); err != nil {
		t.Error(err)
	}
	q.Unfollow(last, last.Waits)
	if got := q.FollowersOf(first.ID); !slices.Equal(got, []model.TaskID{2, 4}) {
		t.Errorf("followers %v after one waits no more", got)
	}
	if q.Audit() == nil {
		t.Error("a task whose predecessor does not know it is not noticed")
	}
	if got := q.TakeFollowers(first.ID); len(got) != 2 || q.FollowersOf(first.ID) != nil {
		t.Errorf("taken %v, left %v", got, q.FollowersOf(first.ID))
	}
}

// TestBacklog checks that the backlog that is updated as tasks come and go equals one that
// is built from the whole queue.
func TestBacklog(t *testing.T) {
	q := begin(model.Options{Order: model.OrderSJF})
	a := q.wait(model.Request{ID: 1, GPUs: 1})
	q.Backlog()
	b := q.wait(model.Request{ID: 2, GPUs: 2})
	if got := ids(q.Backlog().Lane(1)); !slices.Equal(got, []model.TaskID{1, 2}) || q.AuditBacklog() != nil {
		t.Errorf("backlog %v, %v", got, q.AuditBacklog())
	}
	q.Remove(a)
	if q.AuditBacklog() == nil {
		t.Error("a task that left the queue and not the backlog is not noticed")
	}
	q.LeaveBacklog(a)
	if got := ids(q.Backlog().Lane(1)); !slices.Equal(got, []model.TaskID{b.ID}) || q.AuditBacklog() != nil {
		t.Errorf("backlog %v, %v", got, q.AuditBacklog())
	}
}
