package mapper

import (
	"testing"

	"carma/internal/units"
	"carma/mapper/model"
)

// samples returns options under which only sampled memory counts as taken.
func samples() model.Options {
	opt := plain()
	opt.Booking, opt.Headroom = model.BookSamples, units.GiB
	return opt
}

// TestBookSamples checks that memory that no sample shows does not count, that nothing is
// allocated, and that the ledger stays consistent.
func TestBookSamples(t *testing.T) {
	w := newWorld(t, samples(), 1)
	a, b := w.submit(30*units.GiB, nil), w.submit(30*units.GiB, nil)
	w.wantOn(a, 0)
	w.wantOn(b, 0) // 60 of 40 GiB fit, because a uses no memory yet
	w.started(a)
	for _, id := range []model.TaskID{a, b} {
		if got := w.task(id).Current().Grants[0]; got != (model.Grant{GPU: "GPU-0"}) {
			t.Errorf("task %d is granted %+v", id, got)
		}
	}
	if g := w.gpu(0); g.Reserved != 0 || len(g.Residents) != 2 {
		t.Errorf("%s are reserved for %d tasks", g.Reserved, len(g.Residents))
	}

	// Sampled memory of any process counts, and the bound is exact.
	w.sample(model.GPUSample{ID: "GPU-0", Used: 25 * units.GiB, OtherProcesses: 5 * units.GiB, Tasks: []model.TaskUse{{Task: a, Used: 20 * units.GiB}}})
	c := w.submit(14*units.GiB+1, nil)
	w.wantOn(c)
	if got := w.whyNot(c, 0); got.Rule != model.RuleMemory || got.Have != 25*units.GiB || got.Of != 39*units.GiB || got.Need != 14*units.GiB+1 {
		t.Errorf("turned down for %+v", got)
	}
	w.wantOn(w.submit(14*units.GiB, nil), 0)

	// If other processes use more than the total in use, their use counts.
	w.sample(model.GPUSample{ID: "GPU-0", Used: 0, OtherProcesses: 26 * units.GiB})
	d := w.submit(14*units.GiB, nil)
	w.wantOn(d)

	// A sample that shows less lets a task in.
	w.sample(model.GPUSample{ID: "GPU-0", Used: 20 * units.GiB})
	w.wantOn(c, 0)
	w.wantOn(d, 0)
}

// TestBookSamplesAlone checks that an exclusive task is granted all memory, and that no task
// joins it, even though no sample shows its memory.
func TestBookSamplesAlone(t *testing.T) {
	w := newWorld(t, samples(), 1)
	a := w.submit(units.GiB, whole)
	w.wantOn(a, 0)
	if got := w.task(a).Current().Grants[0].Memory; got != 39*units.GiB {
		t.Errorf("it is granted %s", got)
	}
	b := w.submit(units.GiB, nil)
	w.wantOn(b)
	if got := w.whyNot(b, 0); got.Rule != model.RuleAlone {
		t.Errorf("turned down for %+v", got)
	}
}

// TestBookingChanged switches from grants to samples and back while tasks run whose grants
// leave less memory than the headroom.
func TestBookingChanged(t *testing.T) {
	w := newWorld(t, plain(), 1)
	a := w.submit(40*units.GiB, nil)
	w.started(a)
	opt := samples()
	opt.Headroom = 10 * units.GiB
	w.step(model.Configured{At: w.now, Options: opt})
	w.sample(model.GPUSample{ID: "GPU-0", Used: 5 * units.GiB, Tasks: []model.TaskUse{{Task: a, Used: 5 * units.GiB}}})
	b := w.submit(25*units.GiB, nil)
	w.wantOn(b, 0)
	if g := w.gpu(0); g.Reserved != 40*units.GiB || g.Bookable != 40*units.GiB {
		t.Errorf("%s of %s are reserved", g.Reserved, g.Bookable)
	}
	w.step(model.Configured{At: w.now, Options: plain()})
	c := w.submit(units.GiB, nil)
	w.wantOn(c)
	w.exit(a, model.ExitOK)
	w.wantOn(c, 0)
}

// TestBookSamplesBlame checks that without grants no task can exceed its grant. If a task runs
// out of memory, it or other processes are the cause.
func TestBookSamplesBlame(t *testing.T) {
	w := newWorld(t, samples(), 1)
	a, b := w.submit(8*units.GiB, nil), w.submit(8*units.GiB, nil)
	w.started(a)
	w.started(b)
	w.sample(model.GPUSample{ID: "GPU-0", Used: 40 * units.GiB, Tasks: []model.TaskUse{{Task: a, Used: 39 * units.GiB}}})
	w.exit(b, model.ExitGPUOOM)
	if task := w.task(b); task.OOMs != 1 || task.NotAtFault != 0 || task.NextGrant != 11*units.GiB {
		t.Errorf("%d OOMs, %d blameless, needs %s; nothing was seen of it, so that it needs more than it did", task.OOMs, task.NotAtFault, task.NextGrant)
	}
	if task := w.task(a); task.NextGrant != 8*units.GiB || task.Current().Grants[0].Memory != 0 {
		t.Errorf("the neighbour needs %s and is granted %s", task.NextGrant, task.Current().Grants[0].Memory)
	}
	w = newWorld(t, samples(), 1)
	c := w.submit(8*units.GiB, nil)
	w.started(c)
	w.sample(model.GPUSample{ID: "GPU-0", Used: 40 * units.GiB, OtherProcesses: 40 * units.GiB})
	w.exit(c, model.ExitGPUOOM)
	if task := w.task(c); task.OOMs != 0 || task.NotAtFault != 1 {
		t.Errorf("%d OOMs, %d blameless beside a foreign process", task.OOMs, task.NotAtFault)
	}
}

// TestMargin checks that the margin must be free on a GPU with other tasks, but not on an idle
// GPU, and that the margin is not allocated.
func TestMargin(t *testing.T) {
	for _, booking := range model.Bookings {
		opt := plain()
		opt.Booking, opt.Margin, opt.Headroom = booking, 2*units.GiB, units.GiB
		w := newWorld(t, opt, 1)
		a := w.submit(39*units.GiB, nil)
		w.wantOn(a, 0) // exactly the whole GPU, which is idle
		w.exit(a, model.ExitOK)

		a = w.submit(30*units.GiB, nil)
		w.started(a)
		w.sample(model.GPUSample{ID: "GPU-0", Used: 30 * units.GiB, Tasks: []model.TaskUse{{Task: a, Used: 30 * units.GiB}}})
		b := w.submit(7*units.GiB+1, nil)
		w.wantOn(b)
		if got := sayNot(w.whyNot(b, 0)); got != "GPU 0 memory have=30.0 GiB need=9.0 GiB of=39.0 GiB" {
			t.Errorf("%s: turned down: %s", booking, got)
		}
		c := w.submit(7*units.GiB, nil)
		w.wantOn(c, 0) // leaves exactly the margin
		want := 37 * units.GiB
		if booking == model.BookSamples {
			want = 0
		}
		if g := w.gpu(0); g.Reserved != want {
			t.Errorf("%s: %s are reserved, want %s", booking, g.Reserved, want)
		}
	}
}
