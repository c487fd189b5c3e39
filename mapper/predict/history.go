package predict

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"carma/internal/units"
	"carma/mapper/interference"
	"carma/mapper/model"
)

// KindHistory holds the measurements of earlier runs of a kind of task.
type KindHistory struct {
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
func (e *KindHistory) known() bool { return e != nil && e.Runs > 0 }

// MaxKinds bounds the history; the kind that was not seen for longest is dropped.
const MaxKinds = 4096

// maxRuns is the number of runs over which a mean is taken; later runs count for more.
const maxRuns = 16

// RunTimeStep limits the updates of RunTime: it follows Alone only when they differ by more
// than RunTime/RunTimeStep.
const RunTimeStep = 8

// history holds the history of all kinds, by kind.
type history []*KindHistory

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
	return slices.BinarySearchFunc(h, kind, func(e *KindHistory, kind string) int { return cmp.Compare(e.Kind, kind) })
}

// of returns the history of a kind of task, or nil.
func (h history) of(kind string) *KindHistory {
	if i, ok := h.find(kind); ok && kind != "" {
		return h[i]
	}
	return nil
}

// about returns the history of a task's kind, and adds it if there is none. dropped is
// the history removed to make room for it, or nil.
func (h *history) about(t *model.Task, by *ages) (e, dropped *KindHistory) {
	i, ok := h.find(t.Kind)
	if ok {
		return (*h)[i], nil
	}
	if len(*h) >= MaxKinds {
		dropped = by.oldest(*h)
		at, _ := h.find(dropped.Kind)
		*h = slices.Delete(*h, at, at+1)
		i, _ = h.find(t.Kind)
	}
	e = &KindHistory{Kind: t.Kind, Family: t.Family, Program: t.Program, Batch: t.Batch}
	*h = slices.Insert(*h, i, e)
	by.add(e)
	return e, dropped
}

// AddKind adds a task's kind to the history if it is not there. It returns the kind whose
// run time is not known any more because it was dropped to make room, or "".
func (pr *Predictor) AddKind(t *model.Task) (dropped string) {
	_, old := pr.history.about(t, &pr.derived.ages)
	if r := &pr.means; r.valid && old.known() {
		delete(r.kinds, old.Kind)
		r.change(old, old.RunTime, -1)
		return old.Kind
	}
	return ""
}

// RecordRun adds a successful attempt to the history of its kind, which must exist. first
// reports whether it is the first successful attempt. [Predictor.Retime] then updates the
// expected run time.
func (pr *Predictor) RecordRun(t *model.Task, a *model.Attempt) (first bool) {
	e, alone := pr.history.of(t.Kind), time.Duration(t.Done*float64(time.Second))
	e.Alone += (alone - e.Alone) / time.Duration(e.Runs+1)
	e.Runs = min(e.Runs+1, maxRuns)
	e.Peak = max(e.Peak, a.Peak)
	e.HostPeak = max(e.HostPeak, a.HostPeak)
	e.Last = pr.Now()
	pr.measure(e, t, a)
	if len(t.Seen) > 0 {
		e.Loads = t.Seen
	}
	return e.Runs == 1
}

// Retime updates the expected run times after RecordRun, if the mean run time of the kind
// has changed enough. It invalidates the forecasts that depend on them. concerns reports
// whether the expected run time of a task has changed. It is nil if the expected run
// times of other kinds have not changed.
func (pr *Predictor) Retime(t *model.Task) (concerns func(*model.Task) bool, changed bool) {
	e := pr.history.of(t.Kind)
	if change := e.Alone - e.RunTime; e.Runs > 1 && max(change, -change) <= e.RunTime/RunTimeStep {
		return nil, false
	}
	before, runs := *e, e.Runs
	if e.Runs == 1 {
		before.Runs, e.Runs = 0, 0
	}
	r := pr.runs() // the sums before the change, computed from the history if they are missing
	all, family := pr.guesses(e.Family)
	e.RunTime, e.Runs = e.Alone, runs
	if before.known() {
		r.change(e, before.RunTime, -1)
	}
	r.change(e, e.RunTime, 1)
	r.kinds[e.Kind] = e
	pr.guessAgain(e.Family)
	newAll, newFamily := pr.guesses(e.Family)
	return pr.runTimesChanged(t, e.Family, all != newAll, family != newFamily), true
}

// HasRoom reports whether a kind is in the history, or another one may be added without
// dropping one.
func (pr *Predictor) HasRoom(kind string) bool {
	return pr.history.of(kind) != nil || len(pr.history) < MaxKinds
}

// RecordFloor stores the least memory that an attempt of a kind needed. The kind must be in the
// history.
func (pr *Predictor) RecordFloor(t *model.Task, least units.Bytes) {
	e := pr.history.of(t.Kind)
	e.Floor, e.Last = max(e.Floor, least.Clamp()), pr.Now()
}

// Run is an earlier run of a program: its batch size and the highest memory
// seen on one GPU.
type Run struct {
	Batch int
	Peak  units.Bytes
}

// Runs returns the peak of the earlier runs of a program, one for each batch size, in no
// particular order.
func (pr *Predictor) Runs(program string) []Run {
	var runs []Run
	for _, e := range pr.history {
		if program != "" && pr.Options().Learn && e.Program == program && e.Batch > 0 && e.Peak > 0 {
			runs = append(runs, Run{e.Batch, e.Peak})
		}
	}
	return runs
}

// Recalls reports whether earlier runs of a kind decide the grant of its next run.
func (pr *Predictor) Recalls(kind string) bool {
	e := pr.history.of(kind)
	return pr.Options().Learn && e != nil && e.Peak > 0
}

// runTimesChanged invalidates what depends on the expected run time of tasks like t. all
// and family report whether the guesses for tasks with unknown run times have changed
// too: all for tasks of no known family, family for tasks of the family called name. The
// returned function reports whether the expected run time of a task has changed. It is
// nil if only tasks of t's kind have another expected run time.
func (pr *Predictor) runTimesChanged(t *model.Task, name string, all, family bool) func(*model.Task) bool {
	if !all && !family {
		for _, g := range pr.GpusOf(t.Kind) {
			g.InvalidateForecast()
		}
		return nil
	}
	pr.derived.learned++
	pr.times.version++
	kinds := pr.runs().kinds
	concerns := func(other *model.Task) bool {
		switch {
		case other.Kind == t.Kind:
			return true
		case other.Expected.RunTime > 0 || kinds[other.Kind] != nil:
			return false
		case other.Family == name:
			return family || all
		}
		return all && (other.Family == everyFamily || pr.guess[other.Family] == 0)
	}
	for _, g := range pr.GPUList() {
		if slices.ContainsFunc(g.Residents, func(r model.Resident) bool { return concerns(pr.TaskByID(r.Task)) }) {
			g.InvalidateForecast()
		}
	}
	return concerns
}

// A task with a history is granted the highest peak times LearnedFactor, or plus LearnedLeast
// if that is more, because samples miss short spikes, and runs differ.
const (
	LearnedFactor = 1.03
	LearnedLeast  = 128 * units.MiB
)

// ApplyHistory replaces a task's estimate by the memory that earlier runs of its kind have
// used. If that is more than the largest GPU has without the headroom, the task gets a whole
// GPU.
func (pr *Predictor) ApplyHistory(t *model.Task) {
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
	seen := model.Estimate{Memory: max(peak.Scale(LearnedFactor), peak+LearnedLeast), Method: model.FromHistory}
	if t.Estimate.Method == model.Declared && t.Estimate.Memory >= seen.Memory {
		return // the user may know of later growth
	}
	if most := pr.MostBookable().Of(max(t.GPUs, 1)); most >= 0 && seen.Memory > most {
		seen = model.Estimate{WholeGPU: true, Large: true, Method: seen.Method}
	}
	seen.Plain, seen.Share = t.Estimate.Plain, t.Estimate.Share
	t.Estimate = seen
}

// raise handles kinds without a successful run. floor is the least memory that those runs
// needed. An estimate below floor is replaced by the memory that recovery grants after a GPU
// OOM.
func (pr *Predictor) raise(t *model.Task, floor units.Bytes) {
	if t.Estimate.WholeGPU || t.Estimate.Memory >= floor {
		return
	}
	plain, share := t.Estimate.Plain, t.Estimate.Share
	t.Estimate = model.Estimate{Memory: AfterOOM(floor), Method: model.FromHistory}
	if most := pr.MostBookable().Of(max(t.GPUs, 1)); most >= 0 && t.Estimate.Memory > most {
		t.Estimate = model.Estimate{WholeGPU: true, Large: true, Method: model.FromHistory}
	}
	t.Estimate.Plain, t.Estimate.Share = plain, share
}

// A task with a history is allocated its highest host memory times hostFactor plus hostExtra,
// because samples miss short spikes, and data loaders differ from run to run.
const (
	hostFactor = 1.15
	hostExtra  = 256 * units.MiB
)

// ApplyHostHistory applies the host memory that earlier runs of a task's kind have used.
func (pr *Predictor) ApplyHostHistory(t *model.Task) {
	if e := pr.history.of(t.Kind); pr.Options().Learn && e != nil && e.HostPeak > 0 {
		t.NextHostGrant = max(t.NextHostGrant, (e.HostPeak.Scale(hostFactor) + hostExtra).Clamp())
	}
}

// After its first GPU OOM a task is granted its demand times oomFactor plus oomExtra.
const (
	oomFactor = 1.25
	oomExtra  = units.GiB
)

// AfterOOM returns the next grant of a task after its first GPU OOM.
func AfterOOM(demand units.Bytes) units.Bytes { return (demand.Scale(oomFactor) + oomExtra).Clamp() }
