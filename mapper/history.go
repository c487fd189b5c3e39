package mapper

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"carma/mapper/units"

	"carma/mapper/interference"
)

// experience is what earlier runs of a kind of task have shown.
type experience struct {
	Kind   string `json:"kind"`
	Family string `json:"family,omitempty"`
	// Program and Batch are those of its tasks.
	Program string `json:"program,omitempty"`
	Batch   int    `json:"batch,omitempty"`
	// Runs are those that ended well.
	Runs int `json:"runs"`
	// Alone is the mean run time, as if the runs had been alone on their GPUs.
	Alone time.Duration `json:"alone,omitempty"`
	// RunTime is the expected time of the next run. It follows Alone in steps, so
	// that not every end of a task changes the order of the queue.
	RunTime time.Duration `json:"run_time,omitempty"`
	// Peak is the highest memory seen on one GPU.
	Peak units.Bytes `json:"peak,omitempty"`
	// Floor is the memory that a run needed at least that ran out of memory,
	// failed or was stopped. 0: not seen.
	Floor units.Bytes `json:"floor,omitempty"`
	// Loads are its activity on each of its GPUs while it was alone there; empty:
	// not seen.
	Loads []interference.Load `json:"loads,omitempty"`
	// Last is when it was last learned from.
	Last units.Instant `json:"last"`
}

// known reports whether a run has ended well; else only Floor is.
func (e *experience) known() bool { return e != nil && e.Runs > 0 }

// maxKinds bounds the history; the kind that was not seen for longest goes.
const maxKinds = 4096

// maxRuns is how many runs a mean is taken over: later ones count for more.
const maxRuns = 16

// runTimeStep: RunTime follows Alone only when they differ by more than one part
// in so many.
const runTimeStep = 8

// history is all experience, by kind.
type history []*experience

// audit returns what makes no sense.
func (h history) audit() error {
	for i, e := range h {
		switch {
		case e == nil || i > 0 && h[i-1].Kind >= e.Kind:
			return fmt.Errorf("the history is not in order")
		case e.Runs < 0 || e.Runs > maxRuns || e.Alone < 0 || e.Peak != e.Peak.Clamp() || e.Floor != e.Floor.Clamp() || e.Batch < 0:
			return fmt.Errorf("the history of %q has %d runs of %s with %d and %d bytes at batch %d", e.Kind, e.Runs, e.Alone, e.Peak, e.Floor, e.Batch)
		}
	}
	return nil
}

func (h history) find(kind string) (int, bool) {
	return slices.BinarySearchFunc(h, kind, func(e *experience, kind string) int { return cmp.Compare(e.Kind, kind) })
}

// of returns the experience with a kind of task, or nil.
func (h history) of(kind string) *experience {
	if i, ok := h.find(kind); ok && kind != "" {
		return h[i]
	}
	return nil
}

// about returns the experience with a task's kind, made if there is none yet.
func (h *history) about(t *Task) *experience {
	i, ok := h.find(t.Kind)
	if ok {
		return (*h)[i]
	}
	if len(*h) >= maxKinds {
		oldest := slices.MinFunc(*h, func(a, b *experience) int {
			return cmp.Or(cmp.Compare(a.Last, b.Last), cmp.Compare(a.Kind, b.Kind))
		})
		*h = slices.DeleteFunc(*h, func(e *experience) bool { return e == oldest })
		i, _ = h.find(t.Kind)
	}
	e := &experience{Kind: t.Kind, Family: t.Family, Program: t.Program, Batch: t.Batch}
	*h = slices.Insert(*h, i, e)
	return e
}

// learn takes note of an attempt that ended well and was seen to run.
func (s *State) learn(t *Task, a *Attempt) {
	if t.Kind == "" || a.Started == 0 {
		return
	}
	e := s.history.about(t)
	alone := time.Duration(t.Done * float64(time.Second))
	e.Alone += (alone - e.Alone) / time.Duration(e.Runs+1)
	e.Runs = min(e.Runs+1, maxRuns)
	e.Peak = max(e.Peak, a.Peak)
	e.Last = s.now
	if len(t.Seen) > 0 {
		e.Loads = t.Seen
	}
	if change := e.Alone - e.RunTime; e.Runs == 1 || max(change, -change) > e.RunTime/runTimeStep {
		e.RunTime = e.Alone
		s.relearned(t)
	}
}

// learnFloor takes note of what an attempt that did not end well needed at
// least.
func (s *State) learnFloor(t *Task, least units.Bytes) {
	if t.Kind == "" || least <= 0 || s.history.of(t.Kind) == nil && len(s.history) >= maxKinds {
		return
	}
	e := s.history.about(t)
	e.Floor, e.Last = max(e.Floor, least.Clamp()), s.now
}

// Run is an earlier run of a program: its batch size and the highest memory
// seen on one GPU.
type Run struct {
	Batch int
	Peak  units.Bytes
}

// Runs returns what earlier runs of a program have used, one for each batch
// size, in no particular order.
func (s *State) Runs(program string) []Run {
	var runs []Run
	for _, e := range s.history {
		if program != "" && s.opt.Learn && e.Program == program && e.Batch > 0 && e.Peak > 0 {
			runs = append(runs, Run{e.Batch, e.Peak})
		}
	}
	return runs
}

// Recalls reports whether earlier runs of a kind of task will decide what is
// booked for the next.
func (s *State) Recalls(kind string) bool {
	e := s.history.of(kind)
	return s.opt.Learn && e != nil && e.Peak > 0
}

// relearned follows a change of what tasks like t are expected to take.
func (s *State) relearned(t *Task) {
	s.notes.learned++
	for _, g := range s.gpus {
		if slices.ContainsFunc(g.Residents, func(r Resident) bool { return s.concerns(t, s.tasks[r.Task]) }) {
			g.forget()
		}
	}
	if s.opt.Order == OrderSJF {
		s.resort(func(w *Task) bool { return s.concerns(t, w) })
	}
}

// concerns reports whether a run of t may change how long another task is
// expected to run.
func (s *State) concerns(t, other *Task) bool {
	return other.Kind == t.Kind || other.Expected.RunTime == 0 && !s.history.of(other.Kind).known()
}

// From history a task is booked the highest peak times learnedFactor, or plus
// learnedLeast where that is more: samples miss short spikes, and runs differ.
const (
	learnedFactor = 1.03
	learnedLeast  = 128 * units.MiB
)

// recall replaces a task's estimate by what earlier runs of its kind have used.
// If that is more than any GPU can give beside the headroom, the task gets a
// whole GPU.
func (s *State) recall(t *Task) {
	e := s.history.of(t.Kind)
	if !s.opt.Learn || e == nil {
		return
	}
	if len(e.Loads) == t.GPUs {
		t.Expected.Loads, t.Expected.Source = e.Loads, "history"
	}
	if e.Peak == 0 {
		s.raise(t, e.Floor)
		return
	}
	peak := max(e.Peak, e.Floor)
	seen := Estimate{Memory: max(peak.Scale(learnedFactor), peak+learnedLeast), Method: FromHistory}
	if t.Estimate.Method == Declared && t.Estimate.Memory >= seen.Memory {
		return // the user may know of more to come
	}
	if most := s.ceiling(s.bookable).of(max(t.GPUs, 1)); most >= 0 && seen.Memory > most {
		seen = Estimate{WholeGPU: true, Method: seen.Method}
	}
	t.Estimate = seen
}

// raise is for kinds of which no run has ended well. An estimate below floor, the
// memory those runs needed at least, becomes what recovery gives after a GPU OOM.
func (s *State) raise(t *Task, floor units.Bytes) {
	if t.Estimate.WholeGPU || t.Estimate.Memory >= floor {
		return
	}
	t.Estimate = Estimate{Memory: afterOOM(floor), Method: FromHistory}
	if most := s.ceiling(s.bookable).of(max(t.GPUs, 1)); most >= 0 && t.Estimate.Memory > most {
		t.Estimate = Estimate{WholeGPU: true, Method: FromHistory}
	}
}
