package mapper

import (
	"cmp"
	"slices"

	"carma/internal/units"
)

// VacatesOnRequest says that the program of an attempt offers to leave its GPUs by itself when it
// is asked, and to come back to them (runner/suspend/leave). That works where the driver
// cannot suspend it: on several GPUs, and beside others that share by MPS.
type VacatesOnRequest struct {
	At      units.Instant `json:"at"`
	Task    TaskID        `json:"task"`
	Attempt int           `json:"attempt"`
}

func (e VacatesOnRequest) when() units.Instant { return e.At }

func (VacatesOnRequest) kind() string { return "leaves" }

func (e VacatesOnRequest) about() TaskID { return e.Task }

func (s *State) vacatesOnRequest(ev VacatesOnRequest) {
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

// vacatesFor reports whether a running task is asked to leave by itself, and not taken
// off by the driver.
func (t *Task) vacatesFor(why Reason) bool { return t.Last().Leaves && !why.moves() }

// resumesInPlace reports whether a suspended task comes back only to the GPUs that it had.
func (t *Task) resumesInPlace() bool { return t.Phase == Suspended && t.Suspension.InPlace }

// has reports whether a GPU is one of those that a suspended task had.
func (a *Suspension) has(id GPUID) bool {
	return slices.ContainsFunc(a.From, func(g Grant) bool { return g.GPU == id })
}

// isOriginalGPU reports whether a task has left a GPU by itself, or is about to, and comes back
// only to that.
func (s *State) isOriginalGPU(g *GPU) bool {
	for _, t := range s.tasks { // no decision depends on the order
		if away := t.Suspension; away != nil && away.InPlace && (away.has(g.ID) || slices.ContainsFunc(t.Last().Grants, func(at Grant) bool { return at.GPU == g.ID })) {
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

// Residue is what a suspended task still has on a GPU.
type SuspendedResidue struct {
	Task TaskID      `json:"task"`
	Used units.Bytes `json:"used"`
}

// recordResidue is the memory that suspended tasks still have on a GPU: one that left by
// itself keeps its context there. It is booked for nobody, and counts as foreign; for
// the task itself it does not, when it comes back.
func (s *State) recordResidue(uses []TaskUse) (all []SuspendedResidue) {
	for _, u := range uses {
		if t := s.tasks[u.Task]; t != nil && t.Phase == Suspended && u.Used > 0 {
			all = append(all, SuspendedResidue{u.Task, u.Used.Clamp()})
		}
	}
	return all
}

// residue is what a suspended task still has on a GPU.
func (g *GPU) residue(t *Task) units.Bytes {
	if t.Phase != Suspended {
		return 0
	}
	for _, b := range g.Residue {
		if b.Task == t.ID {
			return b.Used
		}
	}
	return 0
}

// foreignTo is the memory on a GPU that is neither booked nor the task's own.
func (g *GPU) foreignTo(t *Task) units.Bytes { return g.OtherProcesses - g.residue(t) }

// otherProcesses is what others than carma's tasks have on a GPU.
func (g *GPU) otherProcesses() units.Bytes {
	sum := g.OtherProcesses
	for _, b := range g.Residue {
		sum -= b.Used
	}
	return sum
}

// freeFor is the memory of a GPU that a task may have there.
func (s *State) freeFor(t *Task, g *GPU) units.Bytes { return s.free(g) + g.residue(t) }

// assumedBehind is what a program that left by itself is taken to keep on each GPU, its
// CUDA context, until a sample tells.
const assumedBehind = 512 * units.MiB

// addResidue enters what a program that left by itself is taken to have on its GPUs.
func (s *State) addResidue(t *Task) {
	for _, from := range t.Suspension.From {
		g := s.byID[from.GPU]
		if g == nil || !t.Suspension.InPlace || g.residue(t) > 0 {
			continue
		}
		g.Residue = append(slices.Clone(g.Residue), SuspendedResidue{t.ID, assumedBehind})
		g.OtherProcesses = (g.OtherProcesses + assumedBehind).Clamp()
		g.settle()
		s.cache.ceilings = [2]ceiling{}
	}
}

// takesAll follows that a suspended task comes back, or that its container has ended:
// it has left nothing behind any more.
func (s *State) takesAll(t *Task) {
	if !slices.ContainsFunc(s.gpus, func(g *GPU) bool { return len(g.Residue) > 0 }) {
		return
	}
	for _, g := range slices.Clone(s.gpus) {
		i := slices.IndexFunc(g.Residue, func(b SuspendedResidue) bool { return b.Task == t.ID })
		if i < 0 {
			continue
		}
		g.OtherProcesses = max(0, g.OtherProcesses-g.Residue[i].Used)
		g.Residue = slices.Delete(slices.Clone(g.Residue), i, i+1)
		g.settle()
		s.cache.ceilings, s.dirty = [2]ceiling{}, true
		s.forgetMissing(g)
	}
}
