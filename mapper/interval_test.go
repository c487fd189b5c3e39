package mapper

import (
	"slices"
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
)

// TestInterval checks that one launch is made in each interval, at the timer, in the
// order of the queues.
func TestInterval(t *testing.T) {
	opt := plain()
	opt.Interval = 10 * time.Second
	w := newWorld(t, opt, 2)
	var ids []model.TaskID
	for range 5 {
		ids = append(ids, w.submit(units.GiB, nil))
	}
	w.wantOn(ids[0], 0)
	if why, _ := w.s.Why(ids[1]); sayWhy(why) != "interval span=10s" {
		t.Errorf("it waits because %q", sayWhy(why))
	}
	if at, ok := w.s.NextTimer(); !ok || at != w.now.Add(10*time.Second) {
		t.Errorf("a wake-up is asked for at %d", at)
	}
	w.exit(ids[0], model.ExitOK) // events in between launch nothing
	if got := w.wait(10*time.Second - 1); len(got) != 0 {
		t.Fatalf("launched %+v before the interval was over", got)
	}
	for i, wait := range []time.Duration{1, 10 * time.Second, 10 * time.Second, 10 * time.Second} {
		if got := w.wait(wait); len(got) != 1 || got[0].Task != ids[i+1] {
			t.Fatalf("launch %d: %+v", i+2, got)
		}
	}
	if got := w.wait(time.Hour); len(got) != 0 || w.s.QueueLen() != 0 {
		t.Errorf("launched %+v", got)
	}
	w.wantOn(w.submit(units.GiB, nil), 0) // long after the last launch
}

// TestIntervalFromRecovery checks that the interval applies to both queues together.
func TestIntervalFromRecovery(t *testing.T) {
	opt := plain()
	opt.Interval = 10 * time.Second
	w := newWorld(t, opt, 1)
	a := w.submit(30*units.GiB, nil)
	w.started(a)
	b := w.submit(units.GiB, nil)
	w.exit(a, model.ExitEvicted)
	if len(w.launches) != 1 {
		t.Fatalf("launched %+v", w.launches)
	}
	w.wait(10 * time.Second)
	w.wantOn(a, 0)
	w.wantOn(b)
	w.wait(10 * time.Second)
	w.wantOn(b, 0)
}

// TestIntervalShortened checks that a shorter interval applies at once, a longer one from
// the next launch on.
func TestIntervalShortened(t *testing.T) {
	with := func(d time.Duration) model.Options { o := plain(); o.Interval = d; return o }
	for _, row := range []struct {
		to   time.Duration
		want time.Duration // after the change, 20 s after the launch
	}{
		{0, 0}, {5 * time.Second, 5 * time.Second}, {time.Minute, 40 * time.Second}, {2 * time.Minute, 40 * time.Second},
	} {
		w := newWorld(t, with(time.Minute), 1)
		w.submit(units.GiB, nil)
		b := w.submit(units.GiB, nil)
		w.wait(20 * time.Second)
		from := w.now
		w.step(model.Configured{At: w.now, Options: with(row.to)})
		for w.on(b) == nil && w.now < from.Add(time.Hour) {
			at, ok := w.s.NextTimer()
			if !ok {
				t.Fatalf("to %s: no wake-up is asked for", row.to)
			}
			w.now = max(w.now, at)
			w.step(model.TimerFired{At: w.now})
		}
		if got := w.now.Sub(from); got != row.want {
			t.Errorf("to %s: launched after %s, want %s", row.to, got, row.want)
		}
	}
}

// TestIntervalAndHold checks that GPUs stay reserved between two launches as well.
func TestIntervalAndHold(t *testing.T) {
	opt := plain()
	opt.Interval, opt.Ageing = 10*time.Second, 0
	w := newWorld(t, opt, 2)
	a := w.submit(units.GiB, nil)
	w.wait(opt.Interval)
	b := w.submit(units.GiB, gpus(2))
	w.wantOn(b, 1, 0)
	w.wait(opt.Interval)
	big := w.submit(units.GiB, func(r *model.Request) { r.GPUs, r.Exclusive = 2, true })
	var later []model.TaskID
	for range 3 {
		later = append(later, w.submit(units.GiB, nil))
	}
	w.wait(time.Minute)
	w.exit(a, model.ExitOK)
	w.wait(time.Minute)
	if slices.ContainsFunc(later, func(id model.TaskID) bool { return w.on(id) != nil }) {
		t.Error("a task was placed on GPUs that are kept free")
	}
	w.exit(b, model.ExitOK)
	w.wait(time.Minute)
	w.wantOn(big, 0, 1)
}
