package mapper

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"carma/internal/units"
	"carma/mapper/interference"
	"carma/mapper/model"
)

// kindHistory holds what earlier runs of a kind of task have shown.
type kindHistory struct {
	Kind   string `json:"kind"`
	Family string `json:"family,omitempty"`
	// Program and Batch are the same for all its tasks.
	Program string `json:"program,omitempty"`
	Batch   int    `json:"batch,omitempty"`
	// Runs counts the successful runs.
	Runs int `json:"runs"`
	// Alone is the mean run time, as if the runs had been alone on their GPUs.
	Alone time.Duration `json:"alone,omitempty"`
	// RunTime is the expected time of the next run. It follows Alone in steps, so
	// that not every end of a task changes the order of the queue.
	RunTime time.Duration `json:"run_time,omitempty"`
	// Peak is the highest memory seen on one GPU.
	Peak units.Bytes `json:"peak,omitempty"`
	// HostPeak is the highest host memory seen.
	HostPeak units.Bytes `json:"host_peak,omitempty"`
	// Floor is the least memory needed by a run that ran out of memory, failed or was
	// stopped, or 0 if none did.
	Floor units.Bytes `json:"floor,omitempty"`
	// Loads are its activity on each of its GPUs while it was alone there, or empty if
	// that was not observed.
	Loads []interference.Load `json:"loads,omitempty"`
	// Plain is the estimate for the last run that measured it.
	Plain model.RawEstimate `json:"plain,omitzero"`
	// Last is the instant of the last update.
	Last units.Instant `json:"last"`
}

// known reports whether a run has succeeded. If not, only Floor is known.
func (e *kindHistory) known() bool { return e != nil && e.Runs > 0 }

// maxKinds bounds the history; the kind that was not seen for longest is dropped.
const maxKinds = 4096

// maxRuns is the number of runs over which a mean is taken; later runs count for more.
const maxRuns = 16

// runTimeStep: RunTime follows Alone only when they differ by more than this part of
// RunTime, one in runTimeStep.
const runTimeStep = 8

// history holds the history of all kinds, by kind.
type history []*kindHistory

// audit returns the first inconsistency.
func (h history) audit() error {
	for i, e := range h {
		switch {
		case e == nil || i > 0 && h[i-1].Kind >= e.Kind:
			return fmt.Errorf("the history is not in order")
		case e.Runs < 0 || e.Runs > maxRuns || e.Alone < 0 || e.Peak != e.Peak.Clamp() || e.Floor != e.Floor.Clamp() || e.HostPeak != e.HostPeak.Clamp() || e.Batch < 0 || e.Plain.Point != e.Plain.Point.Clamp():
			return fmt.Errorf("the history of %q has %d runs of %s with %d and %d bytes at batch %d", e.Kind, e.Runs, e.Alone, e.Peak, e.Floor, e.Batch)
		}
	}
	return nil
}

func (h history) find(kind string) (int, bool) {
	return slices.BinarySearchFunc(h, kind, func(e *kindHistory, kind string) int { return cmp.Compare(e.Kind, kind) })
}

// of returns the history of a kind of task, or nil.
func (h history) of(kind string) *kindHistory {
	if i, ok := h.find(kind); ok && kind != "" {
		return h[i]
	}
	return nil
}

// about returns the history of a task's kind, and adds it if there is none. dropped is
// the history removed to make room for it, or nil.
func (h *history) about(t *model.Task, by *ages) (e, dropped *kindHistory) {
	i, ok := h.find(t.Kind)
	if ok {
		return (*h)[i], nil
	}
	if len(*h) >= maxKinds {
		dropped = by.oldest(*h)
		at, _ := h.find(dropped.Kind)
		*h = slices.Delete(*h, at, at+1)
		i, _ = h.find(t.Kind)
	}
	e = &kindHistory{Kind: t.Kind, Family: t.Family, Program: t.Program, Batch: t.Batch}
	*h = slices.Insert(*h, i, e)
	by.add(e)
	return e, dropped
}

// kindHistoryWith returns the history of a task's kind, and adds it if there is none.
func (ln *learner) kindHistoryWith(t *model.Task) *kindHistory {
	e, dropped := ln.predictor.history.about(t, &ln.predictor.derived.ages)
	if r := &ln.predictor.derived.runs; r.valid && dropped.known() {
		delete(r.kinds, dropped.Kind)
		r.change(dropped, dropped.RunTime, -1)
		ln.reestimate(dropped.Kind)
		for _, w := range ln.WaitingOf(dropped.Kind, nil) {
			ln.queue.onEnqueue(w)
		}
	}
	return e
}

// learn learns from a successful attempt whose start was seen.
func (ln *learner) learn(t *model.Task, a *model.Attempt) {
	if t.Kind == "" || a.Started == 0 {
		return
	}
	e := ln.kindHistoryWith(t)
	alone, before := time.Duration(t.Done*float64(time.Second)), *e
	e.Alone += (alone - e.Alone) / time.Duration(e.Runs+1)
	e.Runs = min(e.Runs+1, maxRuns)
	e.Peak = max(e.Peak, a.Peak)
	e.HostPeak = max(e.HostPeak, a.HostPeak)
	e.Last = ln.Now()
	ln.predictor.measure(e, t, a)
	if len(t.Seen) > 0 {
		e.Loads = t.Seen
	}
	if e.Runs == 1 {
		ln.propagateMemory(t)
	}
	if change := e.Alone - e.RunTime; e.Runs == 1 || max(change, -change) > e.RunTime/runTimeStep {
		ln.retime(t, e, before)
	}
}

// retime updates the guesses after the mean run time of a kind changed. before is the
// history before the change.
func (ln *learner) retime(t *model.Task, e *kindHistory, before kindHistory) {
	e.RunTime = before.RunTime // as in the sums
	if !before.known() {
		e.Runs = 0
	}
	r := ln.predictor.runs() // the earlier sums, computed from the history if they are missing
	all, family := ln.predictor.guesses(e.Family)
	e.RunTime, e.Runs = e.Alone, min(before.Runs+1, maxRuns)
	if before.known() {
		r.change(e, before.RunTime, -1)
	}
	r.change(e, e.RunTime, 1)
	r.kinds[e.Kind] = e
	ln.predictor.guessAgain(e.Family)
	newAll, newFamily := ln.predictor.guesses(e.Family)
	ln.learned(t, e.Family, all != newAll, family != newFamily)
}

// learnFloor stores the least memory that an unsuccessful attempt needed.
func (ln *learner) learnFloor(t *model.Task, least units.Bytes) {
	if t.Kind == "" || least <= 0 || ln.predictor.history.of(t.Kind) == nil && len(ln.predictor.history) >= maxKinds {
		return
	}
	e := ln.kindHistoryWith(t)
	e.Floor, e.Last = max(e.Floor, least.Clamp()), ln.Now()
}

// Run is an earlier run of a program: its batch size and the highest memory
// seen on one GPU.
type Run struct {
	Batch int
	Peak  units.Bytes
}

// Runs returns the peak of the earlier runs of a program, one for each batch size, in no
// particular order.
func (pr *predictor) Runs(program string) []Run {
	var runs []Run
	for _, e := range pr.history {
		if program != "" && pr.Options().Learn && e.Program == program && e.Batch > 0 && e.Peak > 0 {
			runs = append(runs, Run{e.Batch, e.Peak})
		}
	}
	return runs
}

// Recalls reports whether earlier runs of a kind decide the grant of its next run.
func (pr *predictor) Recalls(kind string) bool {
	e := pr.history.of(kind)
	return pr.Options().Learn && e != nil && e.Peak > 0
}

// learned updates what depends on the expected run time of tasks like t. all and family
// say whether the guess for tasks with unknown run times has also changed: for tasks of
// no known family, and for tasks of family name, the family of t's kind.
func (ln *learner) learned(t *model.Task, name string, all, family bool) {
	if !all && !family {
		ln.reestimate(t.Kind)
		for _, g := range ln.GpusOf(t.Kind) {
			g.InvalidateForecast()
		}
		if ln.Options().ShortestFirst() {
			ln.queue.resortKind(t.Kind)
		}
		return
	}
	ln.predictor.derived.learned++
	ln.predictor.derived.timed++
	kinds := ln.predictor.runs().kinds
	concerns := func(other *model.Task) bool {
		switch {
		case other.Kind == t.Kind:
			return true
		case other.Expected.RunTime > 0 || kinds[other.Kind] != nil:
			return false
		case other.Family == name:
			return family || all
		}
		return all && (other.Family == everyFamily || ln.predictor.guess[other.Family] == 0)
	}
	for _, g := range ln.GPUList() {
		if slices.ContainsFunc(g.Residents, func(r model.Resident) bool { return concerns(ln.TaskByID(r.Task)) }) {
			g.InvalidateForecast()
		}
	}
	if ln.Options().ShortestFirst() {
		ln.queue.resort(concerns)
	}
}

// reestimate drops the cached run times of the tasks of a kind.
func (ln *learner) reestimate(kind string) {
	for _, t := range ln.OfKind(kind) {
		ln.predictor.forget(t)
		ln.placer.tried(t).learned = 0
	}
}

// From history a task is granted the highest peak times learnedFactor, or plus
// learnedLeast if that is more: samples miss short spikes, and runs differ.
const (
	learnedFactor = 1.03
	learnedLeast  = 128 * units.MiB
)

// recall replaces a task's estimate by the memory that earlier runs of its kind have
// used. If that is more than any GPU can give beside the headroom, the task gets a whole
// GPU.
func (pr *predictor) recall(t *model.Task) {
	e := pr.history.of(t.Kind)
	if !pr.Options().Learn || e == nil {
		return
	}
	if len(e.Loads) == t.GPUs {
		t.Expected.Loads, t.Expected.Source = e.Loads, model.SourceHistory
	}
	if e.Peak == 0 {
		pr.raise(t, e.Floor)
		return
	}
	peak := max(e.Peak, e.Floor)
	seen := model.Estimate{Memory: max(peak.Scale(learnedFactor), peak+learnedLeast), Method: model.FromHistory}
	if t.Estimate.Method == model.Declared && t.Estimate.Memory >= seen.Memory {
		return // the user may know of later growth
	}
	if most := pr.MostBookable().Of(max(t.GPUs, 1)); most >= 0 && seen.Memory > most {
		seen = model.Estimate{WholeGPU: true, Large: true, Method: seen.Method}
	}
	seen.Plain, seen.Share = t.Estimate.Plain, t.Estimate.Share
	t.Estimate = seen
}

// raise handles kinds without a successful run. An estimate below floor, the least memory
// those runs needed, becomes the memory that recovery grants after a GPU OOM.
func (pr *predictor) raise(t *model.Task, floor units.Bytes) {
	if t.Estimate.WholeGPU || t.Estimate.Memory >= floor {
		return
	}
	plain, share := t.Estimate.Plain, t.Estimate.Share
	t.Estimate = model.Estimate{Memory: afterOOM(floor), Method: model.FromHistory}
	if most := pr.MostBookable().Of(max(t.GPUs, 1)); most >= 0 && t.Estimate.Memory > most {
		t.Estimate = model.Estimate{WholeGPU: true, Large: true, Method: model.FromHistory}
	}
	t.Estimate.Plain, t.Estimate.Share = plain, share
}
