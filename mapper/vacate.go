package mapper

import (
	"cmp"
	"slices"

	"carma/internal/units"
)

// VacatesOnRequest says that the program of an attempt offers to vacate its GPUs on
// request, and to return to them (runner/suspend/leave). That works where the driver
// cannot suspend it: on several GPUs, and beside other MPS clients.
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
	t.Last().Leaves, s.dirty = true, true // others may wait to preempt it
}

// moves reports whether a task that is suspended for a reason must resume on other GPUs.
// A program that vacates its GPUs on request can only return to the same ones.
func (r Reason) moves() bool {
	return r.Code == ReasonMoved || r.Code == ReasonSlowing || r.Code == ReasonDrained
}

// vacatesFor reports whether a running task is asked to vacate its GPUs, instead of being
// suspended by the driver.
func (t *Task) vacatesFor(why Reason) bool { return t.Last().Leaves && !why.moves() }

// resumesInPlace reports whether a suspended task can resume only on the GPUs that it
// had.
func (t *Task) resumesInPlace() bool { return t.Phase == Suspended && t.Suspension.InPlace }

// has reports whether a suspended task had a GPU.
func (a *Suspension) has(id GPUID) bool {
	return slices.ContainsFunc(a.From, func(g Grant) bool { return g.GPU == id })
}

// isOriginalGPU reports whether a task has vacated a GPU, or is about to, and can resume
// only there.
func (l *ledger) isOriginalGPU(g *GPU) bool {
	for _, t := range l.tasks { // no decision depends on the order
		if away := t.Suspension; away != nil && away.InPlace && (away.has(g.ID) || slices.ContainsFunc(t.Last().Grants, func(at Grant) bool { return at.GPU == g.ID })) {
			return true
		}
	}
	return false
}

// asBefore sorts GPUs into the order in which a suspended task had them.
func (a *Suspension) asBefore(gpus []*GPU) {
	at := func(g *GPU) int {
		return slices.IndexFunc(a.From, func(from Grant) bool { return from.GPU == g.ID })
	}
	slices.SortStableFunc(gpus, func(x, y *GPU) int { return cmp.Compare(at(x), at(y)) })
}

// SuspendedResidue is the memory that a suspended task still holds on a GPU.
type SuspendedResidue struct {
	Task TaskID      `json:"task"`
	Used units.Bytes `json:"used"`
}

// recordResidue returns the memory that suspended tasks still hold on a GPU: a program
// that has vacated it keeps its context there. The residue is allocated to no task and
// counts as other processes, except for the task itself when it resumes.
func (l *ledger) recordResidue(uses []TaskUse) (all []SuspendedResidue) {
	for _, u := range uses {
		if t := l.tasks[u.Task]; t != nil && t.Phase == Suspended && u.Used > 0 {
			all = append(all, SuspendedResidue{u.Task, u.Used.Clamp()})
		}
	}
	return all
}

// residue returns the memory that a suspended task still holds on a GPU.
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

// foreignTo returns the memory on a GPU that is neither allocated nor the task's own.
func (g *GPU) foreignTo(t *Task) units.Bytes { return g.OtherProcesses - g.residue(t) }

// otherProcesses returns the memory of processes on a GPU that are not carma's tasks.
func (g *GPU) otherProcesses() units.Bytes {
	sum := g.OtherProcesses
	for _, b := range g.Residue {
		sum -= b.Used
	}
	return sum
}

// freeFor returns the free memory of a GPU for a task, its own residue included.
func (l *ledger) freeFor(t *Task, g *GPU) units.Bytes { return l.free(g) + g.residue(t) }

// assumedBehind is the assumed residue of a program that has vacated a GPU, its CUDA
// context, until a sample shows it.
const assumedBehind = 512 * units.MiB

// addResidue adds the assumed residue of a program that has vacated its GPUs.
func (s *State) addResidue(t *Task) {
	for _, from := range t.Suspension.From {
		g := s.byID[from.GPU]
		if g == nil || !t.Suspension.InPlace || g.residue(t) > 0 {
			continue
		}
		g.Residue = append(slices.Clone(g.Residue), SuspendedResidue{t.ID, assumedBehind})
		g.OtherProcesses = (g.OtherProcesses + assumedBehind).Clamp()
		g.settle()
		s.capacityChanged()
	}
}

// takesAll removes all residue of a suspended task that resumes or whose container has
// ended.
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
		s.capacityChanged()
		s.dirty = true
		s.placer.forgetMissing(g)
	}
}
