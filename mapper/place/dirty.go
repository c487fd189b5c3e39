package place

import (
	"cmp"
	"container/heap"
	"slices"

	"carma/internal/units"
	"carma/mapper/ledger"
	"carma/mapper/model"
)

// dirtySet caches the state of the GPUs in the last scheduling cycle. The next cycle
// checks only GPUs that have changed since (marked), and GPUs whose state may change with
// time alone (due). Without the set, or after the list of GPUs has changed, a cycle
// checks all GPUs. It is part of the cache, so no decision depends on it.
type dirtySet struct {
	valid  bool
	marked []*model.GPU  // changed since they were last checked
	spare  []*model.GPU  // buffer for the next marked
	due    expiryHeap    // all GPUs, by the instant at which their state may change with time alone
	recent []*model.GPU  // changed in this cycle or the previous one, in ledger order
	since  int           // the clock when the previous cycle began
	free   []units.Bytes // the free memory of open GPUs, ascending
	idle   int           // number of open GPUs that are idle
	short  []*model.GPU  // GPUs with less memory than their tasks have taken
}

// gpuDirty is the part of dirtySet about one GPU.
type gpuDirty struct {
	all    *dirtySet // nil outside of a dirtySet
	marked bool
	short  bool
	due    units.Instant
	place  int // index in dirtySet.due
	open   ledger.OpenState
}

// GPUChanged marks a GPU for the next check.
func (c *gpuCache) GPUChanged(g *model.GPU) {
	if l := c.dirty.all; l != nil && !c.dirty.marked {
		c.dirty.marked = true
		l.marked = append(l.marked, g)
	}
}

// refreshDirty updates the set and returns the GPUs that were checked.
func (tr *tracker) refreshDirty() []*model.GPU {
	l := &tr.dirty
	if !l.valid {
		*l = dirtySet{valid: true, marked: slices.Clone(tr.GPUList()), due: slices.Clone(tr.GPUList()), free: l.free[:0]}
		for i, g := range tr.GPUList() {
			cacheOf(g).dirty = gpuDirty{all: l, marked: true, due: tr.Now(), place: i}
		}
	}
	for len(l.due) > 0 && cacheOf(l.due[0]).dirty.due <= tr.Now() && tr.Now() < units.Never {
		g := l.due[0]
		g.Changed()
		cacheOf(g).dirty.due = units.Never
		heap.Fix(&l.due, 0)
	}
	if tr.Now() == units.Never { // no later due instant exists
		for _, g := range tr.GPUList() {
			g.Changed()
		}
	}
	changed := l.marked
	l.marked, l.spare = l.spare[:0], changed
	for _, g := range changed {
		cacheOf(g).dirty.marked = false
		if due := tr.recheckAt(g); due != cacheOf(g).dirty.due {
			cacheOf(g).dirty.due = due
			heap.Fix(&l.due, cacheOf(g).dirty.place)
		}
		tr.tally(g)
		if short := tr.ShortOfMemory(g); short && !cacheOf(g).dirty.short {
			l.short = append(l.short, g)
		}
	}
	l.short = slices.DeleteFunc(l.short, func(g *model.GPU) bool {
		cacheOf(g).dirty.short = tr.ShortOfMemory(g)
		return !cacheOf(g).dirty.short
	})
	return changed
}

// recheckAt returns the instant at which the state of a GPU may change with time alone. A
// GPU with a breaker is checked in each cycle.
func (tr *tracker) recheckAt(g *model.GPU) units.Instant {
	if g.Breaker != nil {
		return tr.Now()
	}
	until := tr.scorer.forecastAt(g).Add(ForecastValid)
	if g.Warming(tr.Now()) {
		until = min(until, g.WarmUntil())
	}
	if !tr.predictor.SamplesShowTasks(g) {
		until = min(until, g.SamplesValidFrom())
	}
	for i := range g.Residents {
		if r := &g.Residents[i]; r.Doubt > 0 {
			if tells := tr.TaskByID(r.Task).Current().Started.Add(TellWithin); tells > tr.Now() {
				until = min(until, tells)
			}
		}
	}
	return until
}

// ShortGPUs returns all short GPUs, in ledger order.
func (tr *tracker) ShortGPUs() (all []*model.GPU) {
	l, some := &tr.dirty, tr.GPUList()
	if l.valid {
		some = l.marked
		all = append(all, l.short...)
	}
	for _, g := range some {
		if tr.ShortOfMemory(g) {
			all = append(all, g)
		}
	}
	slices.SortFunc(all, comparePos)
	return slices.Compact(all)
}

func comparePos(a, b *model.GPU) int { return cmp.Compare(a.Pos(), b.Pos()) }

// tally updates the counts for freeSummary after a GPU changed.
func (tr *tracker) tally(g *model.GPU) {
	was, is, l := &cacheOf(g).dirty.open, tr.OpenState(g), &tr.dirty
	if *was == is {
		return
	}
	if was.Idle {
		l.idle--
	}
	if is.Idle {
		l.idle++
	}
	if was.Open {
		i, _ := slices.BinarySearch(l.free, was.FreeMemory)
		l.free = slices.Delete(l.free, i, i+1)
	}
	if is.Open {
		i, _ := slices.BinarySearch(l.free, is.FreeMemory)
		l.free = slices.Insert(l.free, i, is.FreeMemory)
	}
	*was = is
}

// expiryHeap is a heap of GPUs by due instant.
type expiryHeap []*model.GPU

func (d expiryHeap) Len() int           { return len(d) }
func (d expiryHeap) Less(i, j int) bool { return cacheOf(d[i]).dirty.due < cacheOf(d[j]).dirty.due }
func (d expiryHeap) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	cacheOf(d[i]).dirty.place, cacheOf(d[j]).dirty.place = i, j
}

// Push and Pop satisfy heap.Interface; the set of GPUs never changes.
func (d expiryHeap) Push(any) {}
func (d expiryHeap) Pop() any { return nil }
