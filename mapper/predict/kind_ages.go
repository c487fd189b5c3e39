package predict

import (
	"cmp"
	"container/heap"

	"carma/internal/units"
)

// ages finds the kind that was not seen for longest, without a search of the whole history. An
// instant in the heap is too early if the kind has been seen again since. The method oldest
// corrects such an instant when it reaches the top.
type ages struct {
	valid bool
	heap  ageHeap
}

type age struct {
	last units.Instant
	of   *KindHistory
}

// oldest removes and returns the kind that was not seen for longest; among equals, the
// one whose name is first.
func (a *ages) oldest(h history) *KindHistory {
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

// add adds a new kind.
func (a *ages) add(e *KindHistory) {
	if a.valid {
		heap.Push(&a.heap, age{e.Last, e})
	}
}

// ageHeap implements heap.Interface.
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
