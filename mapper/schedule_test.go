package mapper

import (
	"slices"
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
)

func TestMultiGPU(t *testing.T) {
	t.Run("all at once or none", func(t *testing.T) {
		w := newWorld(t, plain(), 3)
		a, b := w.submit(30*units.GiB, nil), w.submit(30*units.GiB, nil)
		w.wantOn(a, 0)
		w.wantOn(b, 1)
		c := w.submit(20*units.GiB, gpus(3))
		w.wantOn(c)
		if g := w.gpu(2); g.Reserved != 0 {
			t.Errorf("%s are booked on the GPU that is free for a task that does not fit", g.Reserved)
		}
		w.exit(a, model.ExitOK)
		w.wantOn(c)
		w.exit(b, model.ExitOK)
		w.wantOn(c, 0, 1, 2)
		for i := range 3 {
			if g := w.gpu(i); g.Reserved != 20*units.GiB {
				t.Errorf("%s are booked on GPU %d", g.Reserved, i)
			}
		}
	})
	t.Run("on one machine", func(t *testing.T) {
		w := newWorldOf(t, plain(),
			model.GPUInfo{ID: "a0", Node: "a", Index: 0, Capacity: 80 * units.GiB}, model.GPUInfo{ID: "b0", Node: "b", Index: 0, Capacity: 40 * units.GiB},
			model.GPUInfo{ID: "a1", Node: "a", Index: 1, Capacity: 20 * units.GiB}, model.GPUInfo{ID: "b1", Node: "b", Index: 1, Capacity: 40 * units.GiB})
		nodes := func(id model.TaskID) (n []model.GPUID) {
			for _, g := range w.task(id).Current().Grants {
				n = append(n, g.GPU)
			}
			return n
		}
		// The GPU with the most memory is in a machine whose second GPU is too small.
		if got := nodes(w.submit(30*units.GiB, gpus(2))); !slices.Equal(got, []model.GPUID{"b0", "b1"}) {
			t.Errorf("two GPUs of 30 GiB: %v", got)
		}
		if got := nodes(w.submit(15*units.GiB, gpus(2))); !slices.Equal(got, []model.GPUID{"a0", "a1"}) {
			t.Errorf("two GPUs of 15 GiB: %v", got)
		}
		// One free GPU in each of two machines does not fit a task on two GPUs.
		w.exit(1, model.ExitOK)
		w.submit(40*units.GiB, nil) // on a0
		w.submit(40*units.GiB, nil) // on b0
		c := w.submit(15*units.GiB, gpus(2))
		if w.on(c) != nil {
			t.Errorf("two GPUs on two machines: %v", nodes(c))
		}
	})
	t.Run("kept free on one machine", func(t *testing.T) {
		opt := plain()
		opt.Ageing = 0
		w := newWorldOf(t, opt,
			model.GPUInfo{ID: "a0", Node: "a", Capacity: 40 * units.GiB}, model.GPUInfo{ID: "a1", Node: "a", Index: 1, Capacity: 40 * units.GiB}, model.GPUInfo{ID: "b0", Node: "b", Capacity: 40 * units.GiB})
		for range 3 {
			w.submit(30*units.GiB, nil)
		}
		w.exit(3, model.ExitOK) // leaves b0, the GPU with the most room, in a machine with only one
		big := w.submit(20*units.GiB, gpus(2))
		if a, b := w.s.ReservedFor("a0"), w.s.ReservedFor("a1"); a != big || b != big || w.s.ReservedFor("b0") != 0 {
			t.Errorf("GPUs are kept free for %d, %d, %d, want %d on the first two", a, b, w.s.ReservedFor("b0"), big)
		}
	})
}

// order ends the running tasks, one at a time, and returns the order of launches.
func order(w *world) []model.TaskID {
	w.t.Helper()
	for n := 0; w.s.QueueLen() > 0; n++ {
		if n > 100 {
			w.t.Fatal("the queue does not empty")
		}
		for _, task := range w.s.Tasks() {
			if task.Phase.Placed() {
				w.exit(task.ID, model.ExitOK)
				break
			}
		}
	}
	var ids []model.TaskID
	for _, l := range w.launches {
		ids = append(ids, l.Task)
	}
	return ids
}

func TestQueueOrder(t *testing.T) {
	t.Run("priority, then number", func(t *testing.T) {
		w := newWorld(t, plain(), 1)
		w.submit(40*units.GiB, nil)
		for _, edit := range []func(*model.Request){low, nil, high, low, nil, high} {
			w.submit(40*units.GiB, edit)
		}
		if got, want := order(w), []model.TaskID{1, 4, 7, 3, 6, 2, 5}; !slices.Equal(got, want) {
			t.Errorf("launched %v, want %v", got, want)
		}
	})
	t.Run("a priority beyond the classes is the nearest class", func(t *testing.T) {
		w := newWorld(t, plain(), 1)
		w.submit(40*units.GiB, nil)
		for _, p := range []model.Priority{-5, 1, 7} {
			w.submit(40*units.GiB, func(r *model.Request) { r.Priority = p })
		}
		if got, want := order(w), []model.TaskID{1, 3, 4, 2}; !slices.Equal(got, want) {
			t.Errorf("launched %v, want %v", got, want)
		}
	})
	t.Run("recovery before everything", func(t *testing.T) {
		w := newWorld(t, plain(), 1)
		w.submit(30*units.GiB, low)
		w.submit(40*units.GiB, high)
		w.exit(1, model.ExitGPUOOM)
		w.wantPhase(1, model.Launching)
		if got, want := order(w), []model.TaskID{1, 1, 2}; !slices.Equal(got, want) {
			t.Errorf("launched %v, want %v", got, want)
		}
	})
	t.Run("recovery freezes nobody", func(t *testing.T) {
		opt := plain()
		opt.LookAhead = 2
		w := newWorld(t, opt, 4)
		w.submit(25*units.GiB, nil)
		for range 3 { // more tasks than the look-ahead are in recovery and do not fit
			id := w.submit(10*units.GiB, gpus(4))
			w.exitWith(model.Exited{Task: id, Class: model.ExitGPUOOM, Demand: 20 * units.GiB})
			w.wantPhase(id, model.Recovering)
		}
		for range 3 {
			w.wantPhase(w.submit(5*units.GiB, nil), model.Launching)
		}
	})
	t.Run("back-off freezes nobody", func(t *testing.T) {
		opt := plain()
		opt.LookAhead = 1
		w := newWorld(t, opt, 1)
		a, b := w.submit(20*units.GiB, nil), w.submit(20*units.GiB, nil)
		w.exit(a, model.ExitInfrastructure)
		w.exit(b, model.ExitInfrastructure)
		w.wantOn(w.submit(30*units.GiB, nil), 0)
	})
	t.Run("what needs a lost GPU freezes nobody", func(t *testing.T) {
		opt := plain()
		opt.LookAhead, opt.Ageing = 1, 0
		w := newWorld(t, opt, 2)
		busy := w.submit(units.GiB, gpus(2))
		a, b := w.submit(20*units.GiB, func(r *model.Request) { r.GPUs, r.Exclusive = 2, true }), w.submit(40*units.GiB, gpus(2))
		w.sample(model.GPUSample{ID: "GPU-1", Fault: "ECC"})
		w.wantOn(w.submit(20*units.GiB, nil), 0)
		w.wantOn(a)
		w.wantOn(b)
		w.exit(busy, model.ExitOK)
		w.exit(4, model.ExitOK)
		w.sample(model.GPUSample{ID: "GPU-1"})
		w.wantOn(a, 0, 1)
	})
}

func TestLookAhead(t *testing.T) {
	for _, row := range []struct {
		n    int
		runs []model.TaskID
	}{
		{1, []model.TaskID{1}}, // strict first come, first served
		{2, []model.TaskID{1}},
		{3, []model.TaskID{1, 4}},
		{4, []model.TaskID{1, 4, 6}},
	} {
		opt := plain()
		opt.LookAhead = row.n
		w := newWorld(t, opt, 1)
		for _, mem := range []units.Bytes{30, 20, 20, 4, 20, 3} {
			w.submit(mem*units.GiB, nil)
		}
		var runs []model.TaskID
		for _, task := range w.s.Tasks() {
			if task.Phase.Placed() {
				runs = append(runs, task.ID)
			}
		}
		if !slices.Equal(runs, row.runs) {
			t.Errorf("look-ahead %d: %v run, want %v", row.n, runs, row.runs)
		}
		// A task beyond the look-ahead is considered when a task before it leaves the queue.
		w.cancel(2)
		w.cancel(3)
		w.cancel(5)
		w.wantPhase(6, model.Launching)
	}
}

func TestWarmUp(t *testing.T) {
	opt := plain()
	opt.WarmUp = time.Minute
	w := newWorld(t, opt, 2)
	a, b, c := w.submit(units.GiB, nil), w.submit(units.GiB, nil), w.submit(units.GiB, nil)
	w.wantOn(a, 0)
	w.wantOn(b, 1)
	w.wantOn(c)
	w.wait(time.Hour) // a and b have not started to run
	w.wantOn(c)
	w.started(b)
	w.wait(time.Minute - 1)
	w.wantOn(c)
	w.wait(1) // no event but the timer
	w.wantOn(c, 1)
	d := w.submit(units.GiB, nil)
	w.exit(c, model.ExitOK) // its warm-up ends with it
	w.wantOn(d, 1)
}

func TestExclusive(t *testing.T) {
	w := newWorld(t, plain(), 2)
	a := w.submit(5*units.GiB, whole)
	b := w.submitEstimate(model.Estimate{WholeGPU: true}, nil)
	if l := w.launches; !l[0].Alone || !l[1].Alone || l[0].Grants[0].Memory != 40*units.GiB || l[1].Grants[0].Memory != 40*units.GiB {
		t.Errorf("tasks that want GPUs alone are granted %+v", l)
	}
	c := w.submit(units.GiB, nil)
	w.wantOn(c)
	w.exit(a, model.ExitOK)
	w.wantOn(c, 0)
	w.exit(b, model.ExitOK)
	d := w.submit(units.GiB, func(r *model.Request) { r.GPUs, r.Exclusive = 2, true })
	w.wantOn(d)
	w.exit(c, model.ExitOK)
	w.wantOn(d, 0, 1)

	opt := plain()
	opt.Policy, opt.Headroom = "exclusive", units.GiB
	w = newWorld(t, opt, 1)
	w.sample(model.GPUSample{ID: "GPU-0", OtherProcesses: units.GiB})
	w.submit(5*units.GiB, nil)
	if l := w.launches; !l[0].Alone || l[0].Grants[0].Memory != 38*units.GiB {
		t.Errorf("under the policy exclusive a task is granted %+v, not all there is", l)
	}
}
