package mapper

import (
	"cmp"
	"slices"

	"carma/internal/units"
)

// Leaves says that the program of an attempt offers to leave its GPUs by itself when it
// is asked, and to come back to them (runner/suspend/leave). That works where the driver
// cannot suspend it: on several GPUs, and beside others that share by MPS.
type Leaves struct {
	At      units.Instant `json:"at"`
	Task    TaskID        `json:"task"`
	Attempt int           `json:"attempt"`
}

func (e Leaves) when() units.Instant { return e.At }

func (Leaves) kind() string { return "leaves" }

func (e Leaves) about() TaskID { return e.Task }

func (s *State) leaves(ev Leaves) {
	t := s.tasks[ev.Task]
	if t == nil || t.Alive() == nil || t.Last().N != ev.Attempt || t.Last().Leaves || t.GPUs == 0 {
		return
	}
	t.Last().Leaves, s.dirty = true, true // others may wait for it to make way
}

// moves reports whether a task that is suspended for a reason is to come back to other
// GPUs: a program that leaves by itself sees no others.
func (r Reason) moves() bool {
	return r.Code == ReasonMoved || r.Code == ReasonSlowing || r.Code == ReasonDrained
}

// leavesFor reports whether a running task is asked to leave by itself, and not taken
// off by the driver.
func (t *Task) leavesFor(why Reason) bool { return t.Last().Leaves && !why.moves() }

// home reports whether a suspended task comes back only to the GPUs that it had.
func (t *Task) home() bool { return t.Phase == Away && t.Suspension.Left }

// has reports whether a GPU is one of those that a suspended task had.
func (a *Suspension) has(id GPUID) bool {
	return slices.ContainsFunc(a.From, func(g Grant) bool { return g.GPU == id })
}

// isHome reports whether a task has left a GPU by itself, or is about to, and comes back
// only to that.
func (s *State) isHome(g *GPU) bool {
	for _, t := range s.tasks { // no decision depends on the order
		if away := t.Suspension; away != nil && away.Left && (away.has(g.ID) || slices.ContainsFunc(t.Last().Grants, func(at Grant) bool { return at.GPU == g.ID })) {
			return true
		}
	}
	return false
}

// asBefore brings GPUs into the order in which a suspended task had them.
func (a *Suspension) asBefore(gpus []*GPU) {
	at := func(g *GPU) int {
		return slices.IndexFunc(a.From, func(from Grant) bool { return from.GPU == g.ID })
	}
	slices.SortStableFunc(gpus, func(x, y *GPU) int { return cmp.Compare(at(x), at(y)) })
}

// Behind is what a suspended task still has on a GPU.
type Behind struct {
	Task TaskID      `json:"task"`
	Used units.Bytes `json:"used"`
}

// leftBehind is the memory that suspended tasks still have on a GPU: one that left by
// itself keeps its context there. It is booked for nobody, and counts as foreign; for
// the task itself it does not, when it comes back.
func (s *State) leftBehind(uses []TaskUse) (all []Behind) {
	for _, u := range uses {
		if t := s.tasks[u.Task]; t != nil && t.Phase == Away && u.Used > 0 {
			all = append(all, Behind{u.Task, u.Used.Clamp()})
		}
	}
	return all
}

// behind is what a suspended task still has on a GPU.
func (g *GPU) behind(t *Task) units.Bytes {
	if t.Phase != Away {
		return 0
	}
	for _, b := range g.Behind {
		if b.Task == t.ID {
			return b.Used
		}
	}
	return 0
}

// foreignTo is the memory on a GPU that is neither booked nor the task's own.
func (g *GPU) foreignTo(t *Task) units.Bytes { return g.Foreign - g.behind(t) }

// strangers is what others than carma's tasks have on a GPU.
func (g *GPU) strangers() units.Bytes {
	sum := g.Foreign
	for _, b := range g.Behind {
		sum -= b.Used
	}
	return sum
}

// freeFor is the memory of a GPU that a task may have there.
func (s *State) freeFor(t *Task, g *GPU) units.Bytes { return s.free(g) + g.behind(t) }

// assumedBehind is what a program that left by itself is taken to keep on each GPU, its
// CUDA context, until a sample tells.
const assumedBehind = 512 * units.MiB

// leaveBehind enters what a program that left by itself is taken to have on its GPUs.
func (s *State) leaveBehind(t *Task) {
	for _, from := range t.Suspension.From {
		g := s.byID[from.GPU]
		if g == nil || !t.Suspension.Left || g.behind(t) > 0 {
			continue
		}
		g.Behind = append(slices.Clone(g.Behind), Behind{t.ID, assumedBehind})
		g.Foreign = (g.Foreign + assumedBehind).Clamp()
		g.settle()
		s.notes.ceilings = [2]ceiling{}
	}
}

// takesAll follows that a suspended task comes back, or that its container has ended:
// it has left nothing behind any more.
func (s *State) takesAll(t *Task) {
	if !slices.ContainsFunc(s.gpus, func(g *GPU) bool { return len(g.Behind) > 0 }) {
		return
	}
	for _, g := range slices.Clone(s.gpus) {
		i := slices.IndexFunc(g.Behind, func(b Behind) bool { return b.Task == t.ID })
		if i < 0 {
			continue
		}
		g.Foreign = max(0, g.Foreign-g.Behind[i].Used)
		g.Behind = slices.Delete(slices.Clone(g.Behind), i, i+1)
		g.settle()
		s.notes.ceilings, s.dirty = [2]ceiling{}, true
		s.forgetMissing(g)
	}
}
