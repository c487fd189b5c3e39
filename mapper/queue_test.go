package mapper

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestQueues compares the queues with a sorted list.
func TestQueues(t *testing.T) {
	longer(t)
	rapid.Check(t, func(t *rapid.T) {
		q := queues{byPriority: rapid.Bool().Draw(t, "by priority")}
		var model []*Task
		lastID := TaskID(0)
		order := func(a, b *Task) int {
			first := compareBools(!a.first(), !b.first())
			if priority := cmp.Compare(b.Priority, a.Priority); q.byPriority {
				return cmp.Or(priority, first, cmp.Compare(a.ID, b.ID))
			} else {
				return cmp.Or(first, priority, cmp.Compare(a.ID, b.ID))
			}
		}
		add := func(task *Task) {
			q.add(task)
			i, _ := slices.BinarySearchFunc(model, task, order)
			model = slices.Insert(model, i, task)
		}
		remove := func(i int) {
			if !q.remove(model[i]) || q.remove(model[i]) {
				t.Fatalf("task %d is not there once", model[i].ID)
			}
			model = slices.Delete(model, i, i+1)
		}
		t.Repeat(map[string]func(*rapid.T){
			"add many": func(t *rapid.T) {
				for range rapid.IntRange(1, 90).Draw(t, "n") {
					lastID += 2
					add(&Task{Request: Request{ID: lastID}, Phase: Queued})
				}
			},
			"add": func(t *rapid.T) {
				task := &Task{Phase: rapid.SampledFrom([]Phase{Queued, Recovering}).Draw(t, "phase")}
				task.ID = TaskID(rapid.Int64Range(0, int64(lastID)).Draw(t, "id"))*2 + 1
				task.Priority = rapid.SampledFrom([]Priority{Low, Normal, High}).Draw(t, "priority")
				if !slices.ContainsFunc(model, func(m *Task) bool { return m.ID == task.ID }) {
					add(task)
				}
			},
			"remove": func(t *rapid.T) {
				if len(model) > 0 {
					remove(rapid.IntRange(0, len(model)-1).Draw(t, "at"))
				}
			},
			"remove the first": func(t *rapid.T) {
				for range min(len(model), 80) {
					remove(0)
				}
			},
			"": func(t *rapid.T) {
				var got []*Task
				for l := range q.lanes {
					got = append(got, q.lanes[l].waiting()...)
				}
				slices.SortStableFunc(got, order) // each lane is in order
				if !slices.Equal(got, model) || q.len() != len(model) {
					t.Fatalf("%d tasks in the queues, want %d", len(got), len(model))
				}
				for i, task := range model {
					if q.position(task) != i+1 || i > 0 && !q.before(model[i-1], task) {
						t.Fatalf("task %d is at place %d, want %d", task.ID, q.position(task), i+1)
					}
				}
			},
		})
	})
}
