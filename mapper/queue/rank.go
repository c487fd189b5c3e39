package queue

import (
	"time"

	"carma/internal/units"
	"carma/mapper/model"
)

// RankOf returns the rank of a waiting task in its lane. Lower ranks go first; equal
// ranks are ordered by task number. The rank is set when the task enters the lane, and
// again when something is learned about the task.
func (q *Queue) RankOf(t *model.Task) units.Instant {
	if !q.Options().ShortestFirst() || t.GoesFirst() {
		return 0
	}
	from := t.Submitted
	if t.Behind > 0 {
		from = t.QueuedAt
	}
	run, _ := q.predictor.RunTime(t)
	return from.Add(sjfWeight * min(run, maxRun) * time.Duration(max(1, min(t.GPUs, maxRankGPUs))))
}

// The rank in the order sjf is the submission plus sjfWeight times the expected run time,
// of which at most maxRun counts, times the number of GPUs. So a task whose run is an
// hour longer is overtaken by tasks that come up to sjfWeight hours later, and by no
// others.
const (
	sjfWeight = 8
	maxRun    = 30 * 24 * time.Hour
	// maxRankGPUs: a task on several GPUs waits like a task on one GPU that runs that
	// many times as long, up to this number.
	maxRankGPUs = 8
)

// ResortKind recomputes the ranks of the waiting tasks of a kind, and moves the tasks
// whose ranks change.
func (q *Queue) ResortKind(kind string) {
	waiting := q.WaitingOf(kind, nil)
	if len(waiting) > FewMoves {
		q.Resort(func(t *model.Task) bool { return t.Kind == kind })
		return
	}
	for _, t := range waiting {
		q.UpdateBacklog(t)
		if rank := q.RankOf(t); rank != t.Rank {
			q.waiting.move(t, rank)
		}
	}
	q.MarkDirty()
}

// FewMoves is the largest number of tasks for which moving each is cheaper than sorting
// all, in the queue and in the backlog.
const FewMoves = 32

// move changes the rank of a waiting task.
func (q *queues) move(t *model.Task, rank units.Instant) {
	line := q.lanes[LaneOf(t)].LineOf(t)
	i, _ := line.find(t)
	line.Remove(i)
	t.Rank = rank
	line.Add(t)
}

// Resort recomputes the ranks of the waiting tasks that a filter selects, and moves the
// tasks whose ranks change.
func (q *Queue) Resort(which func(*model.Task) bool) {
	n := 0
	for i := range q.waiting.lanes {
		for _, line := range q.waiting.lanes[i].lines {
			moved := false
			for _, t := range line.Waiting() {
				if !which(t) {
					continue
				}
				if n++; n > FewMoves {
					q.sums = Backlog{}
				}
				q.UpdateBacklog(t)
				if rank := q.RankOf(t); rank != t.Rank {
					t.Rank, moved = rank, true // a task moved by its user to another's position stays there
				}
			}
			if moved {
				line.Sort()
			}
		}
	}
	q.MarkDirty()
}
