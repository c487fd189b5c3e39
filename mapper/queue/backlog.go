package queue

import (
	"cmp"
	"slices"
	"time"

	"carma/mapper/ledger"
	"carma/mapper/model"
)

// Backlog holds the tasks of the main queue for the search of critical tasks: by priority and expected
// run time, with the sum of their SM work. It is cached and updated on each change of the
// queue and of a waiting task's expected load or run time. So no scheduling cycle walks
// over all waiting tasks.
type Backlog struct {
	valid bool
	byRun [3][]*model.Task // by priority, as the lanes of the main queue: longest first, then by number
	work  int64            // of all, each rounded down, in parts of a GPU-second
	odd   int              // number of tasks whose work cannot be counted as such a number

	weights ledger.PerTask[weight]
}

// weight holds the figures of a task in a backlog.
type weight struct {
	lane int // of the main queue
	run  time.Duration
	work int64 // or -1 if odd
}

// Work is counted in whole parts of a GPU-second, so the sum does not depend on the order
// in which tasks come and go. Negative work, and mostWork or more, is odd.
const (
	workParts = 1e6
	mostWork  = 1e7 // seconds of a whole GPU: four months
)

func (q *Queue) weight(t *model.Task) weight {
	run, _ := q.predictor.RunTime(t)
	w := weight{LaneOf(t) - 3, run, -1}
	if work := q.predictor.SMWork(t, 0); work >= 0 && work < mostWork {
		w.work = int64(work * workParts)
	}
	return w
}

// Lane returns the tasks of a lane of the main queue, the longest expected run first.
func (b *Backlog) Lane(i int) []*model.Task { return b.byRun[i] }

// RunTime returns the expected run time of a task in the backlog.
func (b *Backlog) RunTime(t *model.Task) time.Duration { return b.weights.Of(t).run }

// Countable reports whether the work of all tasks is in the sum.
func (b *Backlog) Countable() bool { return b.odd == 0 }

// WorkBounds returns bounds of the SM work of all tasks, in seconds of a whole GPU.
func (b *Backlog) WorkBounds() (least, most float64) {
	count := len(b.byRun[0]) + len(b.byRun[1]) + len(b.byRun[2])
	return float64(b.work) / workParts, float64(b.work+int64(count)) / workParts
}

func (b *Backlog) find(t *model.Task) (int, bool) {
	w := b.weights.Of(t)
	i, _ := slices.BinarySearchFunc(b.byRun[w.lane], t, b.compareRuns)
	return i, i < len(b.byRun[w.lane]) && b.byRun[w.lane][i] == t
}

func (b *Backlog) compareRuns(x, y *model.Task) int {
	return cmp.Or(cmp.Compare(b.weights.Of(y).run, b.weights.Of(x).run), cmp.Compare(x.ID, y.ID))
}

func (b *Backlog) count(w weight, n int) {
	if w.work < 0 {
		b.odd += n
		return
	}
	b.work += int64(n) * w.work
}

func (b *Backlog) add(t *model.Task, w weight) {
	*b.weights.Of(t) = w
	i, _ := b.find(t)
	b.byRun[w.lane] = slices.Insert(b.byRun[w.lane], i, t)
	b.count(w, 1)
}

func (b *Backlog) remove(t *model.Task) {
	if i, there := b.find(t); there {
		w := *b.weights.Of(t)
		b.byRun[w.lane] = slices.Delete(b.byRun[w.lane], i, i+1)
		b.count(w, -1)
	}
}

// UpdateBacklog updates the backlog after a task entered a queue, or after the expectations
// of a waiting task changed.
func (q *Queue) UpdateBacklog(t *model.Task) {
	b := &q.sums
	if !b.valid || t.GoesFirst() {
		return
	}
	if w := q.weight(t); w != *b.weights.Of(t) || !b.has(t) {
		b.remove(t)
		b.add(t, w)
	}
}

func (b *Backlog) has(t *model.Task) bool {
	_, there := b.find(t)
	return there
}

// LeaveBacklog updates the backlog after a task left its queue.
func (q *Queue) LeaveBacklog(t *model.Task) {
	if q.sums.valid {
		q.sums.remove(t)
	}
}

// Backlog returns the current backlog, and builds it if necessary.
func (q *Queue) Backlog() *Backlog {
	if b := &q.sums; !b.valid {
		*b = q.wholeBacklog()
	}
	return &q.sums
}

// wholeBacklog builds a backlog from the whole queue.
func (q *Queue) wholeBacklog() Backlog {
	b := Backlog{valid: true}
	for i := range q.waiting.main() {
		for _, line := range q.waiting.main()[i].lines {
			for _, t := range line.Waiting() {
				w := q.weight(t)
				*b.weights.Of(t) = w
				b.byRun[i] = append(b.byRun[i], t)
				b.count(w, 1)
			}
		}
		slices.SortFunc(b.byRun[i], b.compareRuns)
	}
	return b
}

// DropBacklog drops the backlog. It is built again when it is needed.
func (q *Queue) DropBacklog() { q.sums = Backlog{} }
