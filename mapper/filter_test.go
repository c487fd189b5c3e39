package mapper

import (
	"reflect"
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
)

// TestPreconditions has a row for each rule that rejects a GPU, with the figures of the reason.
func TestPreconditions(t *testing.T) {
	with := func(edit func(*model.Options)) model.Options { o := plain(); edit(&o); return o }
	for _, row := range []struct {
		name string
		opt  model.Options
		do   func(w *world) model.TaskID // returns the task that must wait
		want model.Rejection
	}{
		{"memory", plain(), func(w *world) model.TaskID {
			w.submit(gib(31.2), nil)
			return w.submit(gib(12.3), nil)
		}, model.Rejection{Rule: model.RuleMemory, Have: gib(31.2), Need: gib(12.3), Of: 40 * units.GiB, Tasks: 1}},
		{"memory, less the headroom", with(func(o *model.Options) { o.Headroom = units.GiB }), func(w *world) model.TaskID {
			w.submit(30*units.GiB, nil)
			return w.submit(10*units.GiB, nil)
		}, model.Rejection{Rule: model.RuleMemory, Have: 30 * units.GiB, Need: 10 * units.GiB, Of: 39 * units.GiB, Tasks: 1}},
		{"memory in foreign use", plain(), func(w *world) model.TaskID {
			w.sample(model.GPUSample{ID: "GPU-0", OtherProcesses: 35 * units.GiB})
			return w.submit(10*units.GiB, nil)
		}, model.Rejection{Rule: model.RuleMemory, Have: 35 * units.GiB, Need: 10 * units.GiB, Of: 40 * units.GiB}},
		{"memory used over the grant", plain(), func(w *world) model.TaskID {
			a := w.submit(10*units.GiB, nil)
			w.started(a)
			w.sample(model.GPUSample{ID: "GPU-0", Used: 35 * units.GiB, Tasks: []model.TaskUse{{Task: a, Used: 35 * units.GiB}}})
			return w.submit(10*units.GiB, nil)
		}, model.Rejection{Rule: model.RuleMemory, Have: 35 * units.GiB, Need: 10 * units.GiB, Of: 40 * units.GiB, Tasks: 1}},
		{"minimum free memory", with(func(o *model.Options) { o.MinFree = 5 * units.GiB }), func(w *world) model.TaskID {
			w.submit(37*units.GiB, nil)
			return w.submit(units.GiB, nil)
		}, model.Rejection{Rule: model.RuleMinFree, Have: 3 * units.GiB, Need: 5 * units.GiB, Tasks: 1}},
		{"SMACT", with(func(o *model.Options) { o.SMACTCap = 0.8 }), func(w *world) model.TaskID {
			w.started(w.submit(units.GiB, nil))
			w.sample(model.GPUSample{ID: "GPU-0", SMACT: 0.91})
			return w.submit(units.GiB, nil)
		}, model.Rejection{Rule: model.RuleSMACT, SMACT: 0.91, Cap: 0.8, Tasks: 1}},
		{"most tasks", with(func(o *model.Options) { o.MaxTasks = 2 }), func(w *world) model.TaskID {
			w.submit(units.GiB, nil)
			w.submit(units.GiB, nil)
			return w.submit(units.GiB, nil)
		}, model.Rejection{Rule: model.RuleMaxTasks, Tasks: 2}},
		{"warming up", with(func(o *model.Options) { o.WarmUp = time.Minute }), func(w *world) model.TaskID {
			w.started(w.submit(units.GiB, nil))
			return w.submit(units.GiB, nil)
		}, model.Rejection{Rule: model.RuleWarmUp, Task: 1, Tasks: 1}},
		{"not started yet", with(func(o *model.Options) { o.WarmUp = time.Minute }), func(w *world) model.TaskID {
			w.submit(units.GiB, nil)
			return w.submit(units.GiB, nil)
		}, model.Rejection{Rule: model.RuleWarmUp, Task: 1, Tasks: 1}},
		{"idle wanted by the task", plain(), func(w *world) model.TaskID {
			w.started(w.submit(units.GiB, nil))
			return w.submit(units.GiB, whole)
		}, model.Rejection{Rule: model.RuleIdle, Tasks: 1}},
		{"idle wanted by an unknown estimate", plain(), func(w *world) model.TaskID {
			w.started(w.submit(units.GiB, nil))
			w.started(w.submit(units.GiB, nil))
			return w.submitEstimate(model.Estimate{WholeGPU: true}, nil)
		}, model.Rejection{Rule: model.RuleIdle, Tasks: 2}},
		{"alone by wish", plain(), func(w *world) model.TaskID {
			w.started(w.submit(units.GiB, whole))
			return w.submit(units.GiB, nil)
		}, model.Rejection{Rule: model.RuleAlone, Task: 1, Tasks: 1}},
		{"alone by policy", with(func(o *model.Options) { o.Policy = "exclusive" }), func(w *world) model.TaskID {
			w.started(w.submit(units.GiB, nil))
			return w.submit(units.GiB, nil)
		}, model.Rejection{Rule: model.RuleAlone, Task: 1, Tasks: 1}},
		{"foreign use where it wants to be alone", with(func(o *model.Options) { o.Headroom = units.GiB / 2 }), func(w *world) model.TaskID {
			w.sample(model.GPUSample{ID: "GPU-0", OtherProcesses: 700 * units.MiB})
			return w.submit(units.GiB, whole)
		}, model.Rejection{Rule: model.RuleForeign, Have: 700 * units.MiB}},
		{"faulty", plain(), func(w *world) model.TaskID {
			w.sample(model.GPUSample{ID: "GPU-0", Fault: "Xid 79, fallen off the bus"})
			return w.submit(units.GiB, nil)
		}, model.Rejection{Rule: model.RuleFault, Fault: "Xid 79, fallen off the bus"}},
		{"missing, with a task", plain(), func(w *world) model.TaskID {
			w.started(w.submit(units.GiB, nil))
			id := w.submit(40*units.GiB, nil)
			w.step(model.GPUsFound{At: w.now})
			return id
		}, model.Rejection{Rule: model.RuleFault, Missing: true, Tasks: 1}},
		{"kept free", with(func(o *model.Options) { o.Ageing = 0 }), func(w *world) model.TaskID {
			w.started(w.submit(units.GiB, nil))
			w.submit(units.GiB, whole)
			return w.submit(units.GiB, nil)
		}, model.Rejection{Rule: model.RuleKept, Task: 2, Tasks: 1}},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld(t, row.opt, 1)
			id := row.do(w)
			row.want.GPU = "GPU-0"
			got := w.whyNot(id, 0)
			if !reflect.DeepEqual(got, row.want) {
				t.Errorf("got  %+v\nwant %+v", got, row.want)
			}
			if why, _ := w.s.Why(id); why.Binding.Code != model.ReasonTurnedDown || !reflect.DeepEqual(*why.Nearest, row.want) {
				t.Errorf("what decides is %q, want %+v", sayWhy(why), row.want)
			}
		})
	}
}

// TestActivityCaps checks the cap on SM activity alone, and together with caps on SM
// occupancy or DRAM activity.
func TestActivityCaps(t *testing.T) {
	for _, row := range []struct {
		smactCap, smoccCap, dramaCap float64
		smact, smocc, drama          float64
		closed                       bool
	}{
		{0.8, 0, 0, 0.8, 0, 0, true},
		{0.8, 0, 0, 0.7999, 1, 1, false},
		{0, 0, 0, 1, 1, 1, false},
		{0, 0.45, 0.4, 1, 1, 1, false}, // these caps alone close no GPU

		{0.8, 0.45, 0.4, 0.8, 0.45, 0, true},
		{0.8, 0.45, 0.4, 0.8, 0, 0.4, true},
		{0.8, 0.45, 0.4, 0.8, 0.45, 0.4, true},
		{0.8, 0.45, 0.4, 1, 0.4499, 0.3999, false},
		{0.8, 0.45, 0.4, 0.7999, 1, 1, false},

		{0.8, 0.45, 0, 1, 0.45, 0, true},
		{0.8, 0.45, 0, 1, 0.4499, 1, false}, // a cap of 0 is no condition
		{0.8, 0, 0.4, 1, 0, 0.4, true},
		{0.8, 0, 0.4, 1, 1, 0.3999, false},
	} {
		opt := plain()
		opt.SMACTCap, opt.SMOCCCap, opt.DRAMACap = row.smactCap, row.smoccCap, row.dramaCap
		w := newWorld(t, opt, 2)
		w.sample(model.GPUSample{ID: "GPU-1", Fault: "ECC"})
		a := w.submit(units.GiB, nil)
		w.wantOn(a, 0)
		w.sample(model.GPUSample{ID: "GPU-0", SMACT: row.smact, SMOCC: row.smocc, DRAMA: row.drama})
		b := w.submit(units.GiB, nil)
		if closed := w.on(b) == nil; closed != row.closed {
			t.Errorf("%+v: closed %v", row, closed)
			continue
		}
		if !row.closed {
			continue
		}
		if got := w.whyNot(b, 0); got.Rule != model.RuleSMACT || got.SMACT != row.smact || got.Cap != row.smactCap {
			t.Errorf("%+v: turned down for %+v", row, got)
		}
		// An idle GPU is open, even if the last samples show activity.
		w.exit(a, model.ExitOK)
		w.wantOn(b, 0)
	}
}

// TestPreconditionsMet has cases that satisfy a rule exactly, so that a changed bound is
// detected.
func TestPreconditionsMet(t *testing.T) {
	opt := plain()
	opt.Headroom, opt.MinFree, opt.SMACTCap, opt.MaxTasks = units.GiB, 5*units.GiB, 0.8, 2
	w := newWorld(t, opt, 1)
	w.started(w.submit(34*units.GiB, nil)) // leaves exactly the minimum
	w.sample(model.GPUSample{ID: "GPU-0", SMACT: 0.7999})
	w.wantOn(w.submit(5*units.GiB, nil), 0) // leaves exactly the headroom

	w = newWorld(t, opt, 1)
	w.sample(model.GPUSample{ID: "GPU-0", OtherProcesses: units.GiB, SMACT: 1}) // as much as the headroom; idle
	id := w.submit(units.GiB, whole)
	w.wantOn(id, 0)
	if got := w.task(id).Current().Grants[0].Memory; got != 38*units.GiB {
		t.Errorf("it has %s for itself, want all of 38 GiB", got)
	}
}

// TestNearest checks that the named GPU is the one closest to being usable.
func TestNearest(t *testing.T) {
	opt := plain()
	opt.SMACTCap = 0.8
	w := newWorld(t, opt, 4)
	w.sample(model.GPUSample{ID: "GPU-3", Fault: "ECC"})
	for range 3 {
		w.started(w.submit(20*units.GiB, nil))
	}
	w.sample(model.GPUSample{ID: "GPU-0", OtherProcesses: 5 * units.GiB}, model.GPUSample{ID: "GPU-1"}, model.GPUSample{ID: "GPU-2"})
	id := w.submit(30*units.GiB, nil)
	if why, _ := w.s.Why(id); sayWhy(why) != "0 of 1: GPU 1 memory have=20.0 GiB need=30.0 GiB of=40.0 GiB" {
		t.Errorf("got %q", sayWhy(why))
	}
	// A GPU with room that is only busy is nearer than any full one.
	w.sample(model.GPUSample{ID: "GPU-2", SMACT: 0.9})
	id = w.submit(16*units.GiB, nil)
	w.wantOn(id, 1)
	id = w.submit(18*units.GiB, nil)
	if why, _ := w.s.Why(id); sayWhy(why) != "0 of 1: GPU 2 smact 0.90 cap=0.80" {
		t.Errorf("got %q", sayWhy(why))
	}
}

func TestWhy(t *testing.T) {
	w := newWorld(t, plain(), 2)
	a := w.submit(30*units.GiB, nil)
	w.started(a)
	b := w.submit(20*units.GiB, gpus(2))
	c := w.submit(25*units.GiB, gpus(2))
	binding := func(id model.TaskID, position int, want string) {
		t.Helper()
		why, ok := w.s.Why(id)
		if !ok || why.Position != position || sayWhy(why) != want {
			t.Errorf("task %d: at place %d, %q; want %d, %q", id, why.Position, sayWhy(why), position, want)
		}
	}
	binding(b, 1, "1 of 2: GPU 0 memory have=30.0 GiB need=20.0 GiB of=40.0 GiB")
	binding(c, 2, "1 of 2: GPU 0 memory have=30.0 GiB need=25.0 GiB of=40.0 GiB")
	if why, _ := w.s.Why(b); !reflect.DeepEqual(why.Fits, []model.GPUID{"GPU-1"}) || len(why.Rejected) != 1 {
		t.Errorf("task %d fits %v, turned down by %v", b, why.Fits, why.Rejected)
	}
	w.step(model.EngineChanged{At: w.now, Reason: "docker does not answer"})
	binding(b, 1, "engine-down \"docker does not answer\"")
	w.step(model.EngineChanged{At: w.now, Up: true})
	w.step(model.GPUsFound{At: w.now, GPUs: []model.GPUInfo{{ID: "GPU-0", Index: 0, Capacity: 40 * units.GiB}}})
	binding(b, 1, "too-many-gpus count=2 limit=1")
	if _, ok := w.s.Why(99); ok {
		t.Error("there is a Why for a task that is not there")
	}
	if why, ok := w.s.Why(a); !ok || why.Phase != model.Running || why.Position != 0 || why.Rejected != nil {
		t.Errorf("a running task: %+v", why)
	}

	w = newWorld(t, plain(), 0)
	a = w.submit(units.GiB, nil)
	binding(a, 1, "no-gpu")

	w = newWorld(t, plain(), 1)
	a = w.submit(units.GiB, nil)
	w.exitWith(model.Exited{Task: a, Class: model.ExitInfrastructure, Message: "the driver was lost"})
	binding(a, 1, "back-off span=10s <- infrastructure \"the driver was lost\"")

	opt := plain()
	opt.LookAhead = 2
	w = newWorld(t, opt, 1)
	w.started(w.submit(30*units.GiB, nil))
	w.submit(20*units.GiB, nil)
	w.submit(20*units.GiB, nil)
	binding(w.submit(units.GiB, nil), 3, "look-ahead count=2 limit=2")
}

func TestCheck(t *testing.T) {
	opt := plain()
	opt.Headroom = units.GiB
	one := []model.GPUInfo{{ID: "a", Index: 0, Capacity: 40 * units.GiB}, {ID: "b", Index: 1, Capacity: 80 * units.GiB}}
	two := []model.GPUInfo{{ID: "a", Node: "m1", Capacity: 40 * units.GiB}, {ID: "b", Node: "m1", Index: 1, Capacity: 40 * units.GiB}, {ID: "c", Node: "m2", Capacity: 80 * units.GiB}}
	parts := []model.GPUInfo{{ID: "a", Index: 0, Capacity: 20 * units.GiB, MIG: true}, {ID: "b", Index: 1, Capacity: 40 * units.GiB, MIG: true}, {ID: "c", Index: 2, Capacity: 30 * units.GiB}}
	for _, row := range []struct {
		name   string
		gpus   []model.GPUInfo
		n      int
		mem    units.Bytes
		option string
		text   string
	}{
		{"just fits", one, 1, 79 * units.GiB, "", ""},
		{"too much", one, 1, 80 * units.GiB, "mem", "too-much-memory need=80.0 GiB of=79.0 GiB count=1"},
		{"two just fit", one, 2, 39 * units.GiB, "", ""},
		{"only one is large", one, 2, 50 * units.GiB, "mem", "too-much-memory need=50.0 GiB of=39.0 GiB count=2"},
		{"too many", one, 3, units.GiB, "gpus", "too-many-gpus count=3 limit=2"},
		{"none said is one", one, 0, 80 * units.GiB, "mem", "too-much-memory need=80.0 GiB of=79.0 GiB count=1"},
		{"not across machines", two, 3, units.GiB, "gpus", "too-many-gpus count=3 limit=2"},
		{"in the larger machine", two, 1, 79 * units.GiB, "", ""},
		{"one part", parts[:2], 1, 39 * units.GiB, "", ""},
		{"two parts", parts[:2], 2, units.GiB, "gpus", "only-parts count=2"},
		{"more than there are parts", parts[:2], 3, units.GiB, "gpus", "too-many-gpus count=3 limit=1"},
		{"parts beside a card", parts, 2, units.GiB, "gpus", "only-parts count=2 limit=1"},
		{"the largest is a part", parts, 1, 39 * units.GiB, "", ""},
		{"memory not across machines", two, 2, 60 * units.GiB, "mem", "too-much-memory need=60.0 GiB of=39.0 GiB count=2"},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorldOf(t, opt, row.gpus...)
			err := w.s.Check(model.Request{GPUs: row.n}, model.Estimate{Memory: row.mem})
			got, _ := err.(*model.ImpossibleError)
			if (err != nil) != (row.text != "") || got != nil && (got.Option != row.option || say(got.Reason) != row.text || err.Error() != string(got.Reason.Code)) {
				t.Fatalf("got %v, want %s: %q", err, row.option, row.text)
			}
			id := w.submit(row.mem, gpus(row.n))
			if row.text != "" {
				w.wantFailed(id, row.text)
			} else if w.on(id) == nil {
				t.Error("it could be met and was not placed")
			}
		})
	}
	// Without a GPU there is nothing to compare with: the task waits for one.
	w := newWorld(t, opt, 1)
	held := w.submit(units.GiB, nil)
	w.step(model.GPUsFound{At: w.now})
	id := w.submit(10*units.GiB, nil)
	w.wantPhase(id, model.Queued)
	w.exit(held, model.ExitOK)
	w.step(model.GPUsFound{At: w.now, GPUs: one})
	w.wantOn(id, 1)
}

func gib(f float64) units.Bytes { return units.GiB.Scale(f) }
