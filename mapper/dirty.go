package mapper

import (
	"cmp"
	"container/heap"
	"slices"

	"carma/internal/units"
)

// dirtySet is how the GPUs looked in the last pass. The next pass looks anew only at GPUs that
// have changed since (they are marked), and at GPUs that look different by now because time
// has passed (they are due). Without it, or after the list of GPUs has changed, a pass looks
// at all of them. It is among the notes, so no decision depends on it.
type dirtySet struct {
	valid  bool
	marked []*GPU        // those that have changed since they were looked at
	spare  []*GPU        // room for the next marked
	due    expiryHeap    // all, by when they may look different though nothing changes
	recent []*GPU        // that looked different in this pass or the one before, in ledger order
	since  int           // the clock when the one before began
	free   []units.Bytes // the free memory of open GPUs, ascending
	idle   int           // how many of the open GPUs are idle
	short  []*GPU        // those with less memory than their tasks have taken
}

// gpuDirty is the part of looks about one GPU.
type gpuDirty struct {
	all    *dirtySet // nil: nobody looks
	marked bool
	short  bool
	due    units.Instant
	place  int // in looks.due
	open   openState
}

// openState is what a survey asks of a GPU.
type openState struct {
	open, idle bool
	free       units.Bytes
}

// markDirty notes that a GPU has changed. Whoever changes what a face, an openness or a shortage
// is made of must call it; settle and forget do. TestProperties finds a call that is missing.
func (g *GPU) markDirty() {
	g.cache.marks++
	if l := &g.cache.looks; l.all != nil && !l.marked {
		l.marked = true
		l.all.marked = append(l.all.marked, g)
	}
}

// refreshDirty brings how the GPUs look up to date and returns those that were looked at anew.
func (s *State) refreshDirty() []*GPU {
	l := &s.cache.looks
	if !l.valid {
		*l = dirtySet{valid: true, marked: slices.Clone(s.gpus), due: slices.Clone(s.gpus), free: l.free[:0]}
		for i, g := range s.gpus {
			g.cache.looks = gpuDirty{all: l, marked: true, due: s.now, place: i}
		}
	}
	for len(l.due) > 0 && l.due[0].cache.looks.due <= s.now && s.now < units.Never {
		g := l.due[0]
		g.markDirty()
		g.cache.looks.due = units.Never
		heap.Fix(&l.due, 0)
	}
	if s.now == units.Never { // no later instant is left to put a GPU off to
		for _, g := range s.gpus {
			g.markDirty()
		}
	}
	anew := l.marked
	l.marked, l.spare = l.spare[:0], anew
	for _, g := range anew {
		g.cache.looks.marked = false
		if due := s.recheckAt(g); due != g.cache.looks.due {
			g.cache.looks.due = due
			heap.Fix(&l.due, g.cache.looks.place)
		}
		s.tally(g)
		if short := s.short(g); short && !g.cache.looks.short {
			l.short = append(l.short, g)
		}
	}
	l.short = slices.DeleteFunc(l.short, func(g *GPU) bool {
		g.cache.looks.short = s.short(g)
		return !g.cache.looks.short
	})
	return anew
}

// recheckAt is the instant at which a GPU may look different though nothing changes
// there. At one on which containers do not start each pass looks.
func (s *State) recheckAt(g *GPU) units.Instant {
	if g.Breaker != nil {
		return s.now
	}
	until := s.forecastAt(g).Add(forecastValid)
	if g.warming(s.now) {
		until = min(until, g.warmUntil)
	}
	if !s.settled(g) {
		until = min(until, g.countsFrom())
	}
	for i := range g.Residents {
		if r := &g.Residents[i]; r.Doubt > 0 {
			if tells := s.tasks[r.Task].Current().Started.Add(tellWithin); tells > s.now {
				until = min(until, tells)
			}
		}
	}
	return until
}

// short reports whether the tasks on a GPU have taken more than there is.
func (s *State) short(g *GPU) bool { return s.free(g) < 0 && len(g.Residents) > 1 }

// shortGPUs are all of those, in ledger order.
func (s *State) shortGPUs() (all []*GPU) {
	l, some := &s.cache.looks, s.gpus
	if l.valid {
		some = l.marked
		all = append(all, l.short...)
	}
	for _, g := range some {
		if s.short(g) {
			all = append(all, g)
		}
	}
	slices.SortFunc(all, comparePos)
	return slices.Compact(all)
}

func comparePos(a, b *GPU) int { return cmp.Compare(a.pos, b.pos) }

func (s *State) openState(g *GPU) (o openState) {
	if s.rejectAny(g) == "" && !g.alone() && !s.full(g) {
		o = openState{true, g.idle(), s.free(g)}
	}
	return o
}

// tally enters a GPU into what a survey counts.
func (s *State) tally(g *GPU) {
	was, is, l := &g.cache.looks.open, s.openState(g), &s.cache.looks
	if *was == is {
		return
	}
	if was.idle {
		l.idle--
	}
	if is.idle {
		l.idle++
	}
	if was.open {
		i, _ := slices.BinarySearch(l.free, was.free)
		l.free = slices.Delete(l.free, i, i+1)
	}
	if is.open {
		i, _ := slices.BinarySearch(l.free, is.free)
		l.free = slices.Insert(l.free, i, is.free)
	}
	*was = is
}

// expiryHeap is a heap by when GPUs have to be looked at.
type expiryHeap []*GPU

func (d expiryHeap) Len() int           { return len(d) }
func (d expiryHeap) Less(i, j int) bool { return d[i].cache.looks.due < d[j].cache.looks.due }
func (d expiryHeap) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d[i].cache.looks.place, d[j].cache.looks.place = i, j
}

// Push and Pop are what heap.Interface asks for; the GPUs stay the same.
func (d expiryHeap) Push(any) {}
func (d expiryHeap) Pop() any { return nil }
