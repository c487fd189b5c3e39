package mapper

import (
	"cmp"
	"container/heap"
	"slices"

	"carma/internal/units"
)

// looks is how the GPUs looked in the last pass. The next pass looks anew only at GPUs that
// have changed since (they are marked), and at GPUs that look different by now because time
// has passed (they are due). Without it, or after the list of GPUs has changed, a pass looks
// at all of them. It is among the notes, so no decision depends on it.
type looks struct {
	valid  bool
	marked []*GPU        // those that have changed since they were looked at
	spare  []*GPU        // room for the next marked
	due    dueGPUs       // all, by when they may look different though nothing changes
	recent []*GPU        // that looked different in this pass or the one before, in ledger order
	since  int           // the clock when the one before began
	free   []units.Bytes // the free memory of open GPUs, ascending
	idle   int           // how many of the open GPUs are idle
	short  []*GPU        // those with less memory than their tasks have taken
}

// gpuLooks is the part of looks about one GPU.
type gpuLooks struct {
	all    *looks // nil: nobody looks
	marked bool
	short  bool
	due    units.Instant
	place  int // in looks.due
	open   openness
}

// openness is what a survey asks of a GPU.
type openness struct {
	open, idle bool
	free       units.Bytes
}

// mark notes that a GPU has changed. Whoever changes what a face, an openness or a shortage
// is made of must call it; settle and forget do. TestProperties finds a call that is missing.
func (g *GPU) mark() {
	g.notes.marks++
	if l := &g.notes.looks; l.all != nil && !l.marked {
		l.marked = true
		l.all.marked = append(l.all.marked, g)
	}
}

// look brings how the GPUs look up to date and returns those that were looked at anew.
func (s *State) look() []*GPU {
	l := &s.notes.looks
	if !l.valid {
		*l = looks{valid: true, marked: slices.Clone(s.gpus), due: slices.Clone(s.gpus), free: l.free[:0]}
		for i, g := range s.gpus {
			g.notes.looks = gpuLooks{all: l, marked: true, due: s.now, place: i}
		}
	}
	for len(l.due) > 0 && l.due[0].notes.looks.due <= s.now && s.now < units.Never {
		g := l.due[0]
		g.mark()
		g.notes.looks.due = units.Never
		heap.Fix(&l.due, 0)
	}
	if s.now == units.Never { // no later instant is left to put a GPU off to
		for _, g := range s.gpus {
			g.mark()
		}
	}
	anew := l.marked
	l.marked, l.spare = l.spare[:0], anew
	for _, g := range anew {
		g.notes.looks.marked = false
		if due := s.looksUntil(g); due != g.notes.looks.due {
			g.notes.looks.due = due
			heap.Fix(&l.due, g.notes.looks.place)
		}
		s.tally(g)
		if short := s.short(g); short && !g.notes.looks.short {
			l.short = append(l.short, g)
		}
	}
	l.short = slices.DeleteFunc(l.short, func(g *GPU) bool {
		g.notes.looks.short = s.short(g)
		return !g.notes.looks.short
	})
	return anew
}

// looksUntil is the instant at which a GPU may look different though nothing changes
// there. At one on which containers do not start each pass looks.
func (s *State) looksUntil(g *GPU) units.Instant {
	if g.Sick != nil {
		return s.now
	}
	until := s.outlookAt(g).Add(lookAgain)
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
	l, some := &s.notes.looks, s.gpus
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

func (s *State) openness(g *GPU) (o openness) {
	if s.rejectAny(g) == "" && !g.alone() && !s.full(g) {
		o = openness{true, g.idle(), s.free(g)}
	}
	return o
}

// tally enters a GPU into what a survey counts.
func (s *State) tally(g *GPU) {
	was, is, l := &g.notes.looks.open, s.openness(g), &s.notes.looks
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

// dueGPUs is a heap by when GPUs have to be looked at.
type dueGPUs []*GPU

func (d dueGPUs) Len() int           { return len(d) }
func (d dueGPUs) Less(i, j int) bool { return d[i].notes.looks.due < d[j].notes.looks.due }
func (d dueGPUs) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d[i].notes.looks.place, d[j].notes.looks.place = i, j
}

// Push and Pop are what heap.Interface asks for; the GPUs stay the same.
func (d dueGPUs) Push(any) {}
func (d dueGPUs) Pop() any { return nil }
