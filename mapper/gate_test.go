package mapper

import (
	"reflect"
	"testing"
	"time"
)

// TestPreconditions has a row for each rule that turns a GPU down: the figures
// and the sentence that the user reads.
func TestPreconditions(t *testing.T) {
	with := func(edit func(*Options)) Options { o := plain(); edit(&o); return o }
	for _, row := range []struct {
		name string
		opt  Options
		do   func(w *world) TaskID // returns the task that must wait
		want Rejection
		text string
	}{
		{"memory", plain(), func(w *world) TaskID {
			w.submit(gib(31.2), nil)
			return w.submit(gib(12.3), nil)
		}, Rejection{Rule: RuleMemory, Have: gib(31.2), Need: gib(12.3), Of: 40 * GiB, Tasks: 1},
			"GPU 0 memory 31.2 of 40.0 GiB reserved, needs 12.3"},
		{"memory, less the headroom", with(func(o *Options) { o.Headroom = GiB }), func(w *world) TaskID {
			w.submit(30*GiB, nil)
			return w.submit(10*GiB, nil)
		}, Rejection{Rule: RuleMemory, Have: 30 * GiB, Need: 10 * GiB, Of: 39 * GiB, Tasks: 1},
			"GPU 0 memory 30.0 of 39.0 GiB reserved, needs 10.0"},
		{"memory in foreign use", plain(), func(w *world) TaskID {
			w.sample(GPUSample{ID: "GPU-0", Foreign: 35 * GiB})
			return w.submit(10*GiB, nil)
		}, Rejection{Rule: RuleMemory, Have: 35 * GiB, Need: 10 * GiB, Of: 40 * GiB},
			"GPU 0 memory 35.0 of 40.0 GiB reserved, needs 10.0"},
		{"memory used over the grant", plain(), func(w *world) TaskID {
			a := w.submit(10*GiB, nil)
			w.started(a)
			w.sample(GPUSample{ID: "GPU-0", Used: 35 * GiB, Tasks: []TaskUse{{Task: a, Used: 35 * GiB}}})
			return w.submit(10*GiB, nil)
		}, Rejection{Rule: RuleMemory, Have: 35 * GiB, Need: 10 * GiB, Of: 40 * GiB, Tasks: 1},
			"GPU 0 memory 35.0 of 40.0 GiB reserved, needs 10.0"},
		{"minimum free memory", with(func(o *Options) { o.MinFree = 5 * GiB }), func(w *world) TaskID {
			w.submit(37*GiB, nil)
			return w.submit(GiB, nil)
		}, Rejection{Rule: RuleMinFree, Have: 3 * GiB, Need: 5 * GiB, Tasks: 1},
			"GPU 0 has 3.0 GiB free, under the minimum of 5.0"},
		{"SMACT", with(func(o *Options) { o.SMACTCap = 0.8 }), func(w *world) TaskID {
			w.started(w.submit(GiB, nil))
			w.sample(GPUSample{ID: "GPU-0", SMACT: 0.91})
			return w.submit(GiB, nil)
		}, Rejection{Rule: RuleSMACT, SMACT: 0.91, Cap: 0.8, Tasks: 1},
			"GPU 0 SMACT 0.91, at or over 0.80"},
		{"most tasks", with(func(o *Options) { o.MaxTasks = 2 }), func(w *world) TaskID {
			w.submit(GiB, nil)
			w.submit(GiB, nil)
			return w.submit(GiB, nil)
		}, Rejection{Rule: RuleMaxTasks, Tasks: 2}, "GPU 0 has 2 tasks, the most allowed"},
		{"warming up", with(func(o *Options) { o.WarmUp = time.Minute }), func(w *world) TaskID {
			w.started(w.submit(GiB, nil))
			return w.submit(GiB, nil)
		}, Rejection{Rule: RuleWarmUp, Task: 1, Tasks: 1}, "GPU 0 is warming up task 1"},
		{"not started yet", with(func(o *Options) { o.WarmUp = time.Minute }), func(w *world) TaskID {
			w.submit(GiB, nil)
			return w.submit(GiB, nil)
		}, Rejection{Rule: RuleWarmUp, Task: 1, Tasks: 1}, "GPU 0 is warming up task 1"},
		{"idle wanted by the task", plain(), func(w *world) TaskID {
			w.started(w.submit(GiB, nil))
			return w.submit(GiB, whole)
		}, Rejection{Rule: RuleIdle, Tasks: 1}, "GPU 0 has 1 task, an idle GPU is needed"},
		{"idle wanted by an unknown estimate", plain(), func(w *world) TaskID {
			w.started(w.submit(GiB, nil))
			w.started(w.submit(GiB, nil))
			return w.submitEstimate(Estimate{WholeGPU: true}, nil)
		}, Rejection{Rule: RuleIdle, Tasks: 2}, "GPU 0 has 2 tasks, an idle GPU is needed"},
		{"alone by wish", plain(), func(w *world) TaskID {
			w.started(w.submit(GiB, whole))
			return w.submit(GiB, nil)
		}, Rejection{Rule: RuleAlone, Task: 1, Tasks: 1}, "GPU 0 belongs to task 1 alone"},
		{"alone by policy", with(func(o *Options) { o.Policy = "exclusive" }), func(w *world) TaskID {
			w.started(w.submit(GiB, nil))
			return w.submit(GiB, nil)
		}, Rejection{Rule: RuleAlone, Task: 1, Tasks: 1}, "GPU 0 belongs to task 1 alone"},
		{"foreign use where it wants to be alone", with(func(o *Options) { o.Headroom = GiB / 2 }), func(w *world) TaskID {
			w.sample(GPUSample{ID: "GPU-0", Foreign: 700 * MiB})
			return w.submit(GiB, whole)
		}, Rejection{Rule: RuleForeign, Have: 700 * MiB},
			"GPU 0 has 700 MiB in use by processes that are not carma's, it must be free of others"},
		{"faulty", plain(), func(w *world) TaskID {
			w.sample(GPUSample{ID: "GPU-0", Fault: "Xid 79, fallen off the bus"})
			return w.submit(GiB, nil)
		}, Rejection{Rule: RuleFault, Fault: "Xid 79, fallen off the bus"},
			"GPU 0 is out of service: Xid 79, fallen off the bus"},
		{"missing, with a task", plain(), func(w *world) TaskID {
			w.started(w.submit(GiB, nil))
			id := w.submit(40*GiB, nil)
			w.step(GPUsFound{At: w.now})
			return id
		}, Rejection{Rule: RuleFault, Fault: "not found on this machine", Tasks: 1},
			"GPU 0 is out of service: not found on this machine"},
		{"kept free", with(func(o *Options) { o.Ageing = 0 }), func(w *world) TaskID {
			w.started(w.submit(GiB, nil))
			w.submit(GiB, whole)
			return w.submit(GiB, nil)
		}, Rejection{Rule: RuleHeld, Task: 2, Tasks: 1}, "GPU 0 is kept free for task 2"},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld(t, row.opt, 1)
			id := row.do(w)
			row.want.GPU = "GPU-0"
			got := w.whyNot(id, 0)
			if !reflect.DeepEqual(got, row.want) {
				t.Errorf("got  %+v\nwant %+v", got, row.want)
			}
			if got.String() != row.text {
				t.Errorf("it says %q, want %q", got, row.text)
			}
			if why, _ := w.s.Why(id); why.Binding != row.text {
				t.Errorf("the reason that decides is %q, want %q", why.Binding, row.text)
			}
		})
	}
}

// TestActivityCaps: the cap on SM activity alone, and where it counts only
// together with SM occupancy or DRAM activity.
func TestActivityCaps(t *testing.T) {
	for _, row := range []struct {
		smactCap, smoccCap, dramaCap float64
		smact, smocc, drama          float64
		closed                       bool
	}{
		{0.8, 0, 0, 0.8, 0, 0, true},
		{0.8, 0, 0, 0.7999, 1, 1, false},
		{0, 0, 0, 1, 1, 1, false},
		{0, 0.45, 0.4, 1, 1, 1, false}, // they close nothing by themselves

		{0.8, 0.45, 0.4, 0.8, 0.45, 0, true},
		{0.8, 0.45, 0.4, 0.8, 0, 0.4, true},
		{0.8, 0.45, 0.4, 0.8, 0.45, 0.4, true},
		{0.8, 0.45, 0.4, 1, 0.4499, 0.3999, false},
		{0.8, 0.45, 0.4, 0.7999, 1, 1, false},

		{0.8, 0.45, 0, 1, 0.45, 0, true},
		{0.8, 0.45, 0, 1, 0.4499, 1, false}, // no cap is no condition met
		{0.8, 0, 0.4, 1, 0, 0.4, true},
		{0.8, 0, 0.4, 1, 1, 0.3999, false},
	} {
		opt := plain()
		opt.SMACTCap, opt.SMOCCCap, opt.DRAMACap = row.smactCap, row.smoccCap, row.dramaCap
		w := newWorld(t, opt, 2)
		w.sample(GPUSample{ID: "GPU-1", Fault: "ECC"})
		a := w.submit(GiB, nil)
		w.wantOn(a, 0)
		w.sample(GPUSample{ID: "GPU-0", SMACT: row.smact, SMOCC: row.smocc, DRAMA: row.drama})
		b := w.submit(GiB, nil)
		if closed := w.on(b) == nil; closed != row.closed {
			t.Errorf("%+v: closed %v", row, closed)
			continue
		}
		if !row.closed {
			continue
		}
		if got := w.whyNot(b, 0); got.Rule != RuleSMACT || got.SMACT != row.smact || got.Cap != row.smactCap {
			t.Errorf("%+v: turned down for %+v", row, got)
		}
		// An idle GPU is open, whatever the last samples say.
		w.exit(a, ExitOK)
		w.wantOn(b, 0)
	}
}

// TestPreconditionsMet has what just passes, so that a bound cannot move.
func TestPreconditionsMet(t *testing.T) {
	opt := plain()
	opt.Headroom, opt.MinFree, opt.SMACTCap, opt.MaxTasks = GiB, 5*GiB, 0.8, 2
	w := newWorld(t, opt, 1)
	w.started(w.submit(34*GiB, nil)) // leaves exactly the minimum
	w.sample(GPUSample{ID: "GPU-0", SMACT: 0.7999})
	w.wantOn(w.submit(5*GiB, nil), 0) // leaves exactly the headroom

	w = newWorld(t, opt, 1)
	w.sample(GPUSample{ID: "GPU-0", Foreign: GiB, SMACT: 1}) // as much as the headroom; idle
	id := w.submit(GiB, whole)
	w.wantOn(id, 0)
	if got := w.task(id).Current().Grants[0].Memory; got != 38*GiB {
		t.Errorf("it has %s for itself, want all of 38 GiB", got)
	}
}

// TestNearest: the GPU that is closest to being usable is the one named.
func TestNearest(t *testing.T) {
	opt := plain()
	opt.SMACTCap = 0.8
	w := newWorld(t, opt, 4)
	w.sample(GPUSample{ID: "GPU-3", Fault: "ECC"})
	for range 3 {
		w.started(w.submit(20*GiB, nil))
	}
	w.sample(GPUSample{ID: "GPU-0", Foreign: 5 * GiB}, GPUSample{ID: "GPU-1"}, GPUSample{ID: "GPU-2"})
	id := w.submit(30*GiB, nil)
	if why, _ := w.s.Why(id); why.Binding != "GPU 1 memory 20.0 of 40.0 GiB reserved, needs 30.0" {
		t.Errorf("got %q", why.Binding)
	}
	// One that fits and is only busy is nearer than any that is full.
	w.sample(GPUSample{ID: "GPU-2", SMACT: 0.9})
	id = w.submit(16*GiB, nil)
	w.wantOn(id, 1)
	id = w.submit(18*GiB, nil)
	if why, _ := w.s.Why(id); why.Binding != "GPU 2 SMACT 0.90, at or over 0.80" {
		t.Errorf("got %q", why.Binding)
	}
}

func TestWhy(t *testing.T) {
	w := newWorld(t, plain(), 2)
	a := w.submit(30*GiB, nil)
	w.started(a)
	b := w.submit(20*GiB, gpus(2))
	c := w.submit(25*GiB, gpus(2))
	binding := func(id TaskID, position int, want string) {
		t.Helper()
		why, ok := w.s.Why(id)
		if !ok || why.Position != position || why.Binding != want {
			t.Errorf("task %d: at place %d, %q; want %d, %q", id, why.Position, why.Binding, position, want)
		}
	}
	binding(b, 1, "1 of 2 GPUs fit; GPU 0 memory 30.0 of 40.0 GiB reserved, needs 20.0")
	binding(c, 2, "1 of 2 GPUs fit; GPU 0 memory 30.0 of 40.0 GiB reserved, needs 25.0")
	if why, _ := w.s.Why(b); !reflect.DeepEqual(why.Fits, []GPUID{"GPU-1"}) || len(why.Rejected) != 1 {
		t.Errorf("task %d fits %v, turned down by %v", b, why.Fits, why.Rejected)
	}
	w.step(EngineChanged{At: w.now, Reason: "docker does not answer"})
	binding(b, 1, "docker does not answer")
	w.step(EngineChanged{At: w.now, Up: true})
	w.step(GPUsFound{At: w.now, GPUs: []GPUInfo{{ID: "GPU-0", Index: 0, Capacity: 40 * GiB}}})
	binding(b, 1, "2 GPUs asked for, this server has 1")
	if _, ok := w.s.Why(99); ok {
		t.Error("there is a Why for a task that is not there")
	}
	if why, ok := w.s.Why(a); !ok || why.Phase != Running || why.Position != 0 || why.Rejected != nil {
		t.Errorf("a running task: %+v", why)
	}

	w = newWorld(t, plain(), 0)
	a = w.submit(GiB, nil)
	binding(a, 1, "no GPU was found on this machine")

	w = newWorld(t, plain(), 1)
	a = w.submit(GiB, nil)
	w.exitWith(Exited{Task: a, Class: ExitInfrastructure, Message: "the driver was lost"})
	binding(a, 1, "tried again in 10s after: the driver was lost")

	opt := plain()
	opt.LookAhead = 2
	w = newWorld(t, opt, 1)
	w.started(w.submit(30*GiB, nil))
	w.submit(20*GiB, nil)
	w.submit(20*GiB, nil)
	binding(w.submit(GiB, nil), 3, "2 tasks ahead of it in the queue; no more than 2 that do not fit are passed over")
}

func TestCheck(t *testing.T) {
	opt := plain()
	opt.Headroom = GiB
	one := []GPUInfo{{ID: "a", Index: 0, Capacity: 40 * GiB}, {ID: "b", Index: 1, Capacity: 80 * GiB}}
	two := []GPUInfo{{ID: "a", Node: "m1", Capacity: 40 * GiB}, {ID: "b", Node: "m1", Index: 1, Capacity: 40 * GiB}, {ID: "c", Node: "m2", Capacity: 80 * GiB}}
	for _, row := range []struct {
		name   string
		gpus   []GPUInfo
		n      int
		mem    Bytes
		option string
		text   string
	}{
		{"just fits", one, 1, 79 * GiB, "", ""},
		{"too much", one, 1, 80 * GiB, "mem", "80.0 GiB of memory asked for on 1 GPU, the most there is: 79.0 GiB"},
		{"two just fit", one, 2, 39 * GiB, "", ""},
		{"only one is large", one, 2, 50 * GiB, "mem", "50.0 GiB of memory asked for on 2 GPUs, the most there is: 39.0 GiB"},
		{"too many", one, 3, GiB, "gpus", "3 GPUs asked for, this server has 2"},
		{"none said is one", one, 0, 80 * GiB, "mem", "80.0 GiB of memory asked for on 1 GPU, the most there is: 79.0 GiB"},
		{"not across machines", two, 3, GiB, "gpus", "3 GPUs asked for, this server has 2"},
		{"in the larger machine", two, 1, 79 * GiB, "", ""},
		{"memory not across machines", two, 2, 60 * GiB, "mem", "60.0 GiB of memory asked for on 2 GPUs, the most there is: 39.0 GiB"},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorldOf(t, opt, row.gpus...)
			err := w.s.Check(Request{GPUs: row.n}, Estimate{Memory: row.mem})
			got, _ := err.(*ImpossibleError)
			if (err != nil) != (row.text != "") || got != nil && (got.Option != row.option || got.Text != row.text || err.Error() != row.text) {
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
	// Without a GPU there is nothing to measure against: the task waits for one.
	w := newWorld(t, opt, 1)
	held := w.submit(GiB, nil)
	w.step(GPUsFound{At: w.now})
	id := w.submit(10*GiB, nil)
	w.wantPhase(id, Queued)
	w.exit(held, ExitOK)
	w.step(GPUsFound{At: w.now, GPUs: one})
	w.wantOn(id, 1)
}

func gib(f float64) Bytes { return GiB.Scale(f) }
