package mapper

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/mapper/predict"
)

// world sends events to a state like a daemon, and checks the invariants after every step.
type world struct {
	t        testing.TB
	s        *State
	now      units.Instant
	last     model.TaskID
	finished map[model.TaskID]model.Task
	stops    []model.Stop
	requeued []model.Requeue
	launches []model.Launch        // all of them, in order
	overuses []model.GrantExceeded // of the latest step
}

// plain returns options with which only memory decides.
func plain() model.Options {
	return model.Options{Policy: "magm", LookAhead: 64, Ageing: time.Hour, Attempts: 4, BlamelessRetries: 8, Backoff: 10 * time.Second}
}

// newWorld has n GPUs of 40 GiB, GPU-0 to GPU-n-1, in one machine.
func newWorld(t testing.TB, opt model.Options, n int) *world {
	t.Helper()
	var gpus []model.GPUInfo
	for i := range n {
		gpus = append(gpus, model.GPUInfo{ID: gpuID(i), Index: i, Capacity: 40 * units.GiB})
	}
	return newWorldOf(t, opt, gpus...)
}

func newWorldOf(t testing.TB, opt model.Options, gpus ...model.GPUInfo) *world {
	t.Helper()
	if err := Validate(opt); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, s: New(opt), now: units.Instant(time.Hour), finished: map[model.TaskID]model.Task{}}
	w.step(model.GPUsFound{At: w.now, GPUs: gpus})
	return w
}

func gpuID(i int) model.GPUID { return model.GPUID(fmt.Sprintf("GPU-%d", i)) }

// step applies one event and returns the launches it led to.
func (w *world) step(ev model.Event) []model.Launch {
	w.t.Helper()
	first := len(w.launches)
	w.overuses = nil
	for _, d := range w.s.Step(ev) {
		switch d := d.(type) {
		case model.Launch:
			if err := w.s.AuditLaunch(d); err != nil {
				w.t.Fatalf("after %#v: %v", ev, err)
			}
			w.launches = append(w.launches, d)
		case model.Finish:
			if _, twice := w.finished[d.Task.ID]; twice {
				w.t.Fatalf("task %d has finished twice", d.Task.ID)
			}
			w.finished[d.Task.ID] = d.Task
		case model.Stop:
			w.stops = append(w.stops, d)
		case model.Requeue:
			w.requeued = append(w.requeued, d)
		case model.GrantExceeded:
			w.overuses = append(w.overuses, d)
		}
	}
	if err := w.s.sound(); err != nil {
		w.t.Fatalf("after %#v: %v", ev, err)
	}
	return w.launches[first:]
}

// wait advances the time, and sends TimerFired for every timer.
func (w *world) wait(d time.Duration) []model.Launch {
	w.t.Helper()
	first := len(w.launches)
	until := w.now.Add(d)
	for {
		at, ok := w.s.NextTimer()
		if !ok || at > until {
			break
		}
		w.now = max(w.now, at)
		w.step(model.TimerFired{At: w.now})
	}
	w.now = until
	return w.launches[first:]
}

// submit adds a task that needs mem on each of its GPUs; edit may be nil.
func (w *world) submit(mem units.Bytes, edit func(*model.Request)) model.TaskID {
	w.t.Helper()
	return w.submitEstimate(model.Estimate{Memory: mem}, edit)
}

func (w *world) submitEstimate(e model.Estimate, edit func(*model.Request)) model.TaskID {
	w.t.Helper()
	id := w.submitOnly(edit)
	w.step(model.Estimated{At: w.now, Task: id, Estimate: e})
	return id
}

func (w *world) submitOnly(edit func(*model.Request)) model.TaskID {
	w.t.Helper()
	w.last++
	r := model.Request{ID: w.last, GPUs: 1}
	if edit != nil {
		edit(&r)
	}
	w.step(model.TaskSubmitted{At: w.now, Request: r})
	return r.ID
}

// attempt returns the number of a task's latest attempt.
func (w *world) attempt(id model.TaskID) int {
	t, ok := w.s.Task(id)
	if !ok {
		end := w.finished[id]
		t = &end
	}
	if last := t.Last(); last != nil {
		return last.N
	}
	return 0
}

func (w *world) started(id model.TaskID) []model.Launch {
	w.t.Helper()
	return w.step(model.Started{At: w.now, Task: id, Attempt: w.attempt(id)})
}

func (w *world) exit(id model.TaskID, class model.Class) []model.Launch {
	w.t.Helper()
	return w.exitWith(model.Exited{Task: id, Class: class, Code: 1, Message: "it said " + string(class)})
}

func (w *world) exitWith(ev model.Exited) []model.Launch {
	w.t.Helper()
	ev.At, ev.Attempt = w.now, w.attempt(ev.Task)
	if ev.Class == model.ExitOK {
		ev.Code, ev.Message = 0, ""
	}
	return w.step(ev)
}

func (w *world) cancel(id model.TaskID) []model.Launch {
	w.t.Helper()
	return w.step(model.Cancel{At: w.now, Task: id, Reason: "by hand"})
}

func (w *world) sample(gpus ...model.GPUSample) []model.Launch {
	w.t.Helper()
	return w.step(model.Sampled{At: w.now, GPUs: gpus})
}

// look makes the state run a scheduling cycle although nothing has changed.
func (w *world) look() []model.Launch {
	w.t.Helper()
	return w.step(model.EngineChanged{At: w.now, Up: true})
}

// on returns the indices of the GPUs of a placed task, in the order they were picked, or
// nil if it is not placed.
func (w *world) on(id model.TaskID) []int {
	t, ok := w.s.Task(id)
	if !ok || t.Current() == nil {
		return nil
	}
	var at []int
	for _, grant := range t.Current().Grants {
		for _, g := range w.s.GPUs() {
			if g.ID == grant.GPU {
				at = append(at, g.Index)
			}
		}
	}
	return at
}

func (w *world) wantOn(id model.TaskID, gpus ...int) {
	w.t.Helper()
	if got := w.on(id); !slices.Equal(got, gpus) {
		w.t.Fatalf("task %d is on GPUs %v, want %v", id, got, gpus)
	}
}

func (w *world) wantPhase(id model.TaskID, want model.Phase) {
	w.t.Helper()
	got := w.finished[id].Phase
	if t, ok := w.s.Task(id); ok {
		got = t.Phase
	}
	if got != want {
		w.t.Fatalf("task %d is %q, want %q", id, got, want)
	}
}

func (w *world) wantFailed(id model.TaskID, reason string) {
	w.t.Helper()
	w.wantPhase(id, model.Failed)
	if got := say(w.finished[id].Reason); got != reason {
		w.t.Fatalf("task %d failed because %q, want %q", id, got, reason)
	}
}

// task returns an unfinished task.
func (w *world) task(id model.TaskID) *model.Task {
	w.t.Helper()
	t, ok := w.s.Task(id)
	if !ok {
		w.t.Fatalf("task %d is not there: %+v", id, w.finished[id])
	}
	return t
}

func (w *world) gpu(i int) model.GPU {
	w.t.Helper()
	for _, g := range w.s.GPUs() {
		if g.Index == i {
			return g
		}
	}
	w.t.Fatalf("there is no GPU %d", i)
	return model.GPU{}
}

// whyNot returns the rejection of a task by the GPU with this index.
func (w *world) whyNot(id model.TaskID, gpu int) model.Rejection {
	w.t.Helper()
	why, ok := w.s.Why(id)
	if !ok {
		w.t.Fatalf("no Why for task %d", id)
	}
	for _, r := range why.Rejected {
		if r.Index == gpu {
			return r
		}
	}
	w.t.Fatalf("task %d was not turned down by GPU %d: %+v", id, gpu, why)
	return model.Rejection{}
}

func whole(r *model.Request) { r.Exclusive = true }
func high(r *model.Request)  { r.Priority = model.High }
func low(r *model.Request)   { r.Priority = model.Low }

func gpus(n int) func(*model.Request) { return func(r *model.Request) { r.GPUs = n } }

// kindHistory returns the history of a kind, or nil.
func (s *State) kindHistory(kind string) *predict.KindHistory {
	for _, e := range s.predictor.Save().History {
		if e.Kind == kind {
			return e
		}
	}
	return nil
}

// learnKinds adds kinds with a run of one GPU to the history.
func (s *State) learnKinds(kinds ...*predict.KindHistory) {
	snap := s.predictor.Save()
	snap.History = slices.Clone(snap.History)
	for _, e := range kinds {
		e.Runs, e.RunTime, e.Last = 1, e.Alone, 1
		snap.History = append(snap.History, e)
	}
	slices.SortFunc(snap.History, func(a, b *predict.KindHistory) int { return cmp.Compare(a.Kind, b.Kind) })
	if err := s.predictor.Restore(snap); err != nil {
		panic(err)
	}
	s.placer.DropCache()
}
