package queue

import (
	"cmp"
	"slices"
	"testing"

	"carma/mapper/model"

	"pgregory.net/rapid"
)

// TestQueues compares the queues with a sorted list.
func TestQueues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := queues{byPriority: rapid.Bool().Draw(t, "by priority")}
		var sorted []*model.Task
		lastID := model.TaskID(0)
		order := func(a, b *model.Task) int {
			first := model.CompareBools(!a.GoesFirst(), !b.GoesFirst())
			if priority := cmp.Compare(b.Priority, a.Priority); q.byPriority {
				return cmp.Or(priority, first, cmp.Compare(a.ID, b.ID))
			} else {
				return cmp.Or(first, priority, cmp.Compare(a.ID, b.ID))
			}
		}
		add := func(task *model.Task) {
			q.add(task)
			i, _ := slices.BinarySearchFunc(sorted, task, order)
			sorted = slices.Insert(sorted, i, task)
		}
		remove := func(i int) {
			if !q.remove(sorted[i]) || q.remove(sorted[i]) {
				t.Fatalf("task %d is not there once", sorted[i].ID)
			}
			sorted = slices.Delete(sorted, i, i+1)
		}
		t.Repeat(map[string]func(*rapid.T){
			"add many": func(t *rapid.T) {
				for range rapid.IntRange(1, 90).Draw(t, "n") {
					lastID += 2
					add(&model.Task{Request: model.Request{ID: lastID}, Phase: model.Queued})
				}
			},
			"add": func(t *rapid.T) {
				task := &model.Task{Phase: rapid.SampledFrom([]model.Phase{model.Queued, model.Recovering}).Draw(t, "phase")}
				task.ID = model.TaskID(rapid.Int64Range(0, int64(lastID)).Draw(t, "id"))*2 + 1
				task.Priority = rapid.SampledFrom([]model.Priority{model.Low, model.Normal, model.High}).Draw(t, "priority")
				if !slices.ContainsFunc(sorted, func(m *model.Task) bool { return m.ID == task.ID }) {
					add(task)
				}
			},
			"remove": func(t *rapid.T) {
				if len(sorted) > 0 {
					remove(rapid.IntRange(0, len(sorted)-1).Draw(t, "at"))
				}
			},
			"remove the first": func(t *rapid.T) {
				for range min(len(sorted), 80) {
					remove(0)
				}
			},
			"": func(t *rapid.T) {
				var got []*model.Task
				for l := range q.lanes {
					got = append(got, q.lanes[l].Waiting()...)
				}
				slices.SortStableFunc(got, order) // each queue is in order
				if !slices.Equal(got, sorted) || q.len() != len(sorted) {
					t.Fatalf("%d tasks in the queues, want %d", len(got), len(sorted))
				}
				for i, task := range sorted {
					if q.position(task) != i+1 || i > 0 && !q.before(sorted[i-1], task) {
						t.Fatalf("task %d is at place %d, want %d", task.ID, q.position(task), i+1)
					}
				}
			},
		})
	})
}
