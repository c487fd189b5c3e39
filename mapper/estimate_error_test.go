package mapper

import (
	"reflect"
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/mapper/predict"
)

// plainly returns an estimate of 10 GiB for a model.
func plainly(network string) model.Estimate {
	return model.Estimate{Memory: 12 * units.GiB, Point: 10 * units.GiB, Plain: model.RawEstimate{Group: "carma cnn", Model: network, Point: 10 * units.GiB, Upper: 12 * units.GiB}}
}

// TestMeasured checks that an attempt counts as a measurement of its estimate only if it
// succeeded, ran long enough, was observed until its end and did not fill a card at its start.
func TestMeasured(t *testing.T) {
	opt := plain()
	opt.Learn = true
	w := newWorld(t, opt, 1)
	run := func(kind string, e model.Estimate, ran time.Duration, ev model.Exited) {
		id := w.submitOnly(func(r *model.Request) { r.Kind = kind })
		w.step(model.Estimated{At: w.now, Task: id, Estimate: e})
		w.started(id)
		w.now = w.now.Add(ran)
		ev.Task = id
		w.exitWith(ev)
		if _, there := w.s.Task(id); there {
			w.cancel(id)
		}
	}
	ok := model.Exited{Class: model.ExitOK, Peak: 13 * units.GiB}
	run("a", plainly("a"), time.Minute, ok)
	want := []predict.EstimateError{{RawEstimate: plainly("a").Plain, Peak: 13 * units.GiB, Last: w.now}}
	if got := w.s.Measured(); !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v, want %+v", got, want)
	}
	run("short", plainly("b"), model.MeasuredLeast-1, ok)
	run("failed", plainly("b"), time.Minute, model.Exited{Class: model.ExitProgram, Peak: 13 * units.GiB})
	run("killed", plainly("b"), time.Minute, model.Exited{Class: model.ExitGPUOOM, Peak: 13 * units.GiB})
	run("filled", plainly("b"), time.Minute, model.Exited{Class: model.ExitOK, Peak: 13 * units.GiB, Filled: true})
	run("unseen", plainly("b"), time.Hour, model.Exited{Class: model.ExitOK, Peak: 13 * units.GiB, Finished: w.now.Add(10 * time.Minute)})
	run("no memory seen", plainly("b"), time.Minute, model.Exited{Class: model.ExitOK})
	run("declared", model.Estimate{Memory: units.GiB, Method: model.Declared}, time.Minute, ok)
	if got := w.s.Measured(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}

	// The next run of a kind is granted memory from the history, and still counts as a
	// measurement.
	run("a", plainly("a"), time.Minute, model.Exited{Class: model.ExitOK, Peak: 14 * units.GiB})
	run("c", plainly("c"), time.Minute, ok)
	got := w.s.Measured()
	if len(got) != 2 || got[0].Peak != 14*units.GiB || got[0].Last != w.now.Add(-time.Minute) || got[1].Model != "c" {
		t.Errorf("got %+v", got)
	}

	// Snapshots contain the measurements.
	body, err := w.s.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	again := New(plain())
	if err := again.UnmarshalJSON(body); err != nil {
		t.Fatal(err)
	}
	if is := again.Measured(); !reflect.DeepEqual(is, got) {
		t.Errorf("after a snapshot %+v, want %+v", is, got)
	}
	opt.Learn = false
	w.step(model.Configured{At: w.now, Options: opt})
	if got := w.s.Measured(); len(got) > 0 {
		t.Errorf("without learning %+v", got)
	}
}
