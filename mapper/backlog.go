package mapper

import (
	"cmp"
	"slices"
	"time"

	"carma/mapper/ledger"
	"carma/mapper/model"
	"carma/mapper/predict"
)

// backlog holds the tasks of the main queue for startCritical: by priority and expected
// run time, with the sum of their SM work. It is cached and updated on each change of the
// queue and of a waiting task's expected load or run time. So no scheduling cycle walks
// over all waiting tasks.
type backlog struct {
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

func (q *schedulingQueue) weight(t *model.Task) weight {
	run, _ := q.predictor.RunTime(t)
	w := weight{laneOf(t) - 3, run, -1}
	if work := q.predictor.SMWork(t, 0); work >= 0 && work < mostWork {
		w.work = int64(work * workParts)
	}
	return w
}

func (b *backlog) find(t *model.Task) (int, bool) {
	w := b.weights.Of(t)
	i, _ := slices.BinarySearchFunc(b.byRun[w.lane], t, b.compareRuns)
	return i, i < len(b.byRun[w.lane]) && b.byRun[w.lane][i] == t
}

func (b *backlog) compareRuns(x, y *model.Task) int {
	return cmp.Or(cmp.Compare(b.weights.Of(y).run, b.weights.Of(x).run), cmp.Compare(x.ID, y.ID))
}

func (b *backlog) count(w weight, n int) {
	if w.work < 0 {
		b.odd += n
		return
	}
	b.work += int64(n) * w.work
}

func (b *backlog) add(t *model.Task, w weight) {
	*b.weights.Of(t) = w
	i, _ := b.find(t)
	b.byRun[w.lane] = slices.Insert(b.byRun[w.lane], i, t)
	b.count(w, 1)
}

func (b *backlog) remove(t *model.Task) {
	if i, there := b.find(t); there {
		w := *b.weights.Of(t)
		b.byRun[w.lane] = slices.Delete(b.byRun[w.lane], i, i+1)
		b.count(w, -1)
	}
}

// onEnqueue updates the backlog after a task entered a queue, or after the expectations
// of a waiting task changed.
func (q *schedulingQueue) onEnqueue(t *model.Task) {
	b := &q.sums
	if !b.valid || t.GoesFirst() {
		return
	}
	if w := q.weight(t); w != *b.weights.Of(t) || !b.has(t) {
		b.remove(t)
		b.add(t, w)
	}
}

func (b *backlog) has(t *model.Task) bool {
	_, there := b.find(t)
	return there
}

// onDequeue updates the backlog after a task left its queue.
func (q *schedulingQueue) onDequeue(t *model.Task) {
	if q.sums.valid {
		q.sums.remove(t)
	}
}

// backlog returns the current backlog, and builds it if necessary.
func (q *schedulingQueue) backlog() *backlog {
	if b := &q.sums; !b.valid {
		*b = q.wholeBacklog()
	}
	return &q.sums
}

// wholeBacklog builds a backlog from the whole queue.
func (q *schedulingQueue) wholeBacklog() backlog {
	b := backlog{valid: true}
	for i := range q.waiting.main() {
		for _, line := range q.waiting.main()[i].lines {
			for _, t := range line.waiting() {
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

// drain returns the time, in seconds, in which the GPUs could do the SM work of all
// running and waiting tasks if they were always busy. It lies between least and most,
// which are very close. Above limit both may only mean "more than limit".
func (pl *placer) drain(b *backlog, limit float64) (least, most float64) {
	if b.odd > 0 {
		exactly := pl.drainExactly(limit)
		return exactly, exactly
	}
	n := float64(len(pl.GPUList()))
	count := len(b.byRun[0]) + len(b.byRun[1]) + len(b.byRun[2])
	low, high := float64(b.work)/workParts, float64(b.work+int64(count))/workParts
	if low*(1-predict.Rounding) > limit*n {
		return low / n, low / n
	}
	running := 0.0
	for _, g := range pl.GPUList() {
		running += pl.memo(g).work
	}
	return (low + running) * (1 - predict.Rounding) / n, (high + running) * (1 + predict.Rounding) / n
}

// drainExactly computes drain exactly, adding in the order of the queue. It stops
// counting above limit.
func (pl *placer) drainExactly(limit float64) float64 {
	work, most := 0.0, limit*float64(len(pl.GPUList()))
	for i := range pl.queue.main() {
		for _, t := range pl.queue.main()[i].waiting() {
			work = pl.predictor.SMWork(t, work)
		}
	}
	for _, g := range pl.GPUList() {
		if work > most {
			break
		}
		for _, p := range pl.memo(g).parts {
			work += p.Left * p.SM
		}
	}
	return work / float64(len(pl.GPUList()))
}
