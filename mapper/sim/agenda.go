package sim

import (
	"cmp"
	"container/heap"

	"carma/internal/units"
)

// Entries due at the same instant come in this order: tasks free their resources before
// all other entries, and a submission comes after the latest sample.
const (
	rankProgress = iota // a run reaches the next point of its plan
	rankCopy            // the memory of a run is copied
	rankStart           // the container of a run starts
	rankRest            // somebody returns to an idle run
	rankSample          // the monitor reads the GPUs
	rankPace            // the output of a run shows its speed
	rankWake            // a timer of the mapper fires
	rankClose           // a GPU is cordoned
	rankSubmit          // the next task arrives
)

// entry is something due at an instant. It can be moved and removed.
type entry struct {
	at   units.Instant
	rank int
	seq  int64 // the task's number, to order equal ranks
	run  *run
	pos  int // in the agenda, from 1, or 0 if not there
}

// agenda is a heap by instant, then rank, then number.
type agenda []*entry

func (a agenda) Len() int { return len(a) }
func (a agenda) Less(i, j int) bool {
	x, y := a[i], a[j]
	if x.at != y.at {
		return x.at < y.at
	}
	return cmp.Or(cmp.Compare(x.rank, y.rank), cmp.Compare(x.seq, y.seq)) < 0
}

func (a agenda) Swap(i, j int) {
	a[i], a[j] = a[j], a[i]
	a[i].pos, a[j].pos = i+1, j+1
}

func (a *agenda) Push(x any) {
	e := x.(*entry)
	*a = append(*a, e)
	e.pos = len(*a)
}

func (a *agenda) Pop() any {
	old := *a
	e := old[len(old)-1]
	old[len(old)-1] = nil
	*a = old[:len(old)-1]
	e.pos = 0
	return e
}

// set makes an entry due at an instant, whether or not it was due before.
func (a *agenda) set(e *entry, at units.Instant) {
	switch {
	case e.pos == 0:
		e.at = at
		heap.Push(a, e)
	case e.at != at:
		e.at = at
		heap.Fix(a, e.pos-1)
	}
}

func (a *agenda) drop(e *entry) {
	if e.pos > 0 {
		heap.Remove(a, e.pos-1)
	}
}

func (a *agenda) next() *entry { return heap.Pop(a).(*entry) }
