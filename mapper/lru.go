package mapper

import (
	"cmp"
	"container/heap"

	"carma/internal/units"
)

// ages finds the kind that was not seen for longest, without looking at the whole
// history. The instants in it may be out of date, as kinds are seen again: then
// they are too early, and are put right when it is their turn.
type ages struct {
	valid bool
	heap  ageHeap
}

type age struct {
	last units.Instant
	of   *kindHistory
}

// oldest takes out the kind that was not seen for longest; of several, the one
// whose name is first.
func (a *ages) oldest(h history) *kindHistory {
	if !a.valid {
		a.valid, a.heap = true, a.heap[:0]
		for _, e := range h {
			a.heap = append(a.heap, age{e.Last, e})
		}
		heap.Init(&a.heap)
	}
	for a.heap[0].last != a.heap[0].of.Last {
		a.heap[0].last = a.heap[0].of.Last
		heap.Fix(&a.heap, 0)
	}
	return heap.Pop(&a.heap).(age).of
}

// add enters a new kind.
func (a *ages) add(e *kindHistory) {
	if a.valid {
		heap.Push(&a.heap, age{e.Last, e})
	}
}

// ageHeap is what container/heap asks for.
type ageHeap []age

func (h ageHeap) Len() int { return len(h) }

func (h ageHeap) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(h[i].last, h[j].last), cmp.Compare(h[i].of.Kind, h[j].of.Kind)) < 0
}

func (h ageHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

func (h *ageHeap) Push(x any) { *h = append(*h, x.(age)) }

func (h *ageHeap) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	(*h)[last] = age{}
	*h = (*h)[:last]
	return x
}
