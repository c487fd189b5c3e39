package mapper

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/mapper/predict"
)

// wantSameOutlook checks that the forecast of a GPU does not depend on when it was
// computed.
func (w *world) wantSameOutlook(gpu int) {
	w.t.Helper()
	g := w.s.GPUList()[gpu]
	kept := slices.Clone(w.s.placer.Forecasts(g))
	w.s.placer.DropCache()
	if fresh := w.s.placer.Forecasts(g); !reflect.DeepEqual(kept, fresh) {
		w.t.Errorf("the forecast is kept as\n%+v\nand worked out again as\n%+v", kept, fresh)
	}
}

// TestOutlookAfterPaced checks that a rate from which nothing is learned about the neighbours
// does not change the forecast of the GPU for the same instant.
func TestOutlookAfterPaced(t *testing.T) {
	w := newWorld(t, uncapped(), 1)
	a := w.put(0, resnet, "a")
	w.wantSameOutlook(0)
	w.wait(time.Minute)
	w.tells(a, 100)
	w.wantSameOutlook(0)
	w.s.predictor.UpdateSpeedOf(w.s.TaskByID(a)) // as after a correction
	if p := w.s.placer.Forecasts(w.s.GPUList()[0])[0]; p.Done != 0 || p.Left != predict.UnknownRun.Seconds() {
		t.Errorf("at its start the task has done %v s and has %v s left", p.Done, p.Left)
	}
}

// TestOutlookWhileResuming checks that the suspended time of a task ends with the
// forecast.
func TestOutlookWhileResuming(t *testing.T) {
	w := newWorldOf(t, uncapped(), model.GPUInfo{ID: gpuID(0), Model: "A100", Capacity: 40 * units.GiB, Suspend: model.SuspendMove})
	a := w.put(0, resnet, "a")
	w.wait(time.Minute)
	w.step(model.SuspendAsked{At: w.now, Task: a})
	w.step(model.SuspendDone{At: w.now, Task: a, Attempt: 1})
	w.wait(time.Minute)
	w.step(model.ResumeAsked{At: w.now, Task: a})
	w.wantPhase(a, model.Resuming)
	w.wantSameOutlook(0)
	w.wait(time.Minute)
	w.step(model.TimerFired{At: w.now})
	w.wantSameOutlook(0)
}
