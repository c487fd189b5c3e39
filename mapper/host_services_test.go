package mapper

import (
	"encoding/json"
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
)

func (w *world) helpers(suite string, memory units.Bytes, cpus int64) {
	w.step(model.HelpersBooked{At: w.now, Suite: suite, Memory: memory, CPUs: cpus})
}

// TestHelpersAreBooked checks that memory of helpers is not allocated to tasks, nor memory of
// tasks to helpers. When helpers are removed, waiting tasks start.
func TestHelpersAreBooked(t *testing.T) {
	w := hosted(t)
	w.helpers("1/x", 10*units.GiB, 2000)
	w.helpers("1/y", 4*units.GiB, 0)
	a := w.submit(units.GiB, hostMem(40*units.GiB))
	w.wantPhase(a, model.Launching)
	if h := w.s.Hosts()[0]; h.Booked != 54*units.GiB || len(h.Helpers) != 2 {
		t.Errorf("%+v", h)
	}
	b := w.submit(units.GiB, hostMem(12*units.GiB))
	w.wantBinding(b, model.Reason{Code: model.ReasonHostMemory, Need: 12 * units.GiB, Have: 10 * units.GiB, Of: 64 * units.GiB, Helpers: 14 * units.GiB})
	for _, tc := range []struct {
		suite  string
		memory units.Bytes
		cpus   int64
		want   model.Reason
	}{
		{"2/z", 10 * units.GiB, 6000, model.Reason{}},
		{"1/x", 20 * units.GiB, 8000, model.Reason{}}, // replaces its present allocation
		{"2/z", 11 * units.GiB, 0, model.Reason{Code: model.ReasonHostMemory, Need: 11 * units.GiB, Have: 10 * units.GiB, Of: 64 * units.GiB, Helpers: 14 * units.GiB}},
		{"2/z", 0, 7000, model.Reason{Code: model.ReasonHostCPUs, More: 7000, Count: 2000, Limit: 8000}},
		{"2/z", 65 * units.GiB, 0, model.Reason{Code: model.ReasonTooMuchHost, Need: 65 * units.GiB, Of: 64 * units.GiB}},
		{"2/z", 0, 9000, model.Reason{Code: model.ReasonTooManyCPUs, More: 9000, Limit: 8000}},
	} {
		if got := w.s.HelpersFit("", tc.suite, tc.memory, tc.cpus); got != tc.want {
			t.Errorf("%s with %s and %d: %+v", tc.suite, tc.memory, tc.cpus, got)
		}
	}
	w.helpers("1/x", 0, 0)
	w.wantPhase(b, model.Launching)
}

// TestHelpersUse checks that helpers that exceed their allocation count with their use.
func TestHelpersUse(t *testing.T) {
	w := hosted(t)
	w.helpers("1/x", 4*units.GiB, 0)
	w.step(model.Sampled{At: w.now, Hosts: []model.HostSample{{Available: 60 * units.GiB, Helpers: []model.HelpersUse{{Suite: "1/x", Used: 30 * units.GiB}, {Suite: "9/unknown", Used: units.GiB}}}}})
	w.wantBinding(w.submit(units.GiB, hostMem(35*units.GiB)), model.Reason{Code: model.ReasonHostMemory, Need: 35 * units.GiB, Have: 34 * units.GiB, Of: 64 * units.GiB, Helpers: 30 * units.GiB})
}

// TestHelpersAreInNobodysWay checks that nothing is reserved for a task that cannot start
// before helpers are removed, because helpers may run for weeks. A task without a request gets
// its part of the remaining memory.
func TestHelpersAreInNobodysWay(t *testing.T) {
	w := hosted(t)
	w.helpers("1/x", 30*units.GiB, 0)
	big := w.submit(units.GiB, hostMem(60*units.GiB))
	w.wait(2 * time.Hour)
	small := w.submit(units.GiB, hostMem(units.GiB))
	w.wantPhase(small, model.Launching)
	w.wantBinding(big, model.Reason{Code: model.ReasonHostMemory, Need: 60 * units.GiB, Have: 33 * units.GiB, Of: 64 * units.GiB, Helpers: 30 * units.GiB})
	w.exit(small, model.ExitOK)
	w.wantPhase(w.submit(0, func(r *model.Request) { r.GPUs, r.Exclusive = 2, true }), model.Launching)
}

// TestHelpersAreKept checks that helpers are in a snapshot, even if nothing else is known about
// the machine, and that they are kept when other machines are found.
func TestHelpersAreKept(t *testing.T) {
	w := newWorld(t, plain(), 1)
	w.helpers("1/x", 4*units.GiB, 1000)
	b, err := json.Marshal(w.s)
	if err != nil {
		t.Fatal(err)
	}
	w.s = &State{}
	if err := json.Unmarshal(b, w.s); err != nil {
		t.Fatal(err)
	}
	w.step(model.HostsFound{At: w.now, Hosts: []model.HostInfo{{Total: 72 * units.GiB, Memory: 64 * units.GiB, CPUs: 8000}}})
	w.step(model.HostsFound{At: w.now})
	w.step(model.HostsFound{At: w.now, Hosts: []model.HostInfo{{Total: 72 * units.GiB, Memory: 64 * units.GiB, CPUs: 8000}}})
	if h := w.s.Hosts()[0]; h.Booked != 4*units.GiB || h.CPUsBooked != 1000 {
		t.Errorf("%+v", h)
	}
}
