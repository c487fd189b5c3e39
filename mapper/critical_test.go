package mapper

import (
	"fmt"
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/interference"
	"carma/mapper/model"
)

// shortest returns options of policy carma with its own order.
func shortest() model.Options {
	opt := predicting()
	opt.Order = model.OrderSJF
	return opt
}

// TestLongestDoesNotStartLast checks that a long task is launched before shorter ones if it
// takes at least as long as the GPUs need for all waiting and running work.
func TestLongestDoesNotStartLast(t *testing.T) {
	tenth := interference.Load{SMACT: 0.7} // on one GPU: 7 h, and 0.7 h for each h1
	for _, row := range []struct {
		name   string
		short  int
		policy string
		order  string
		shape  func(*model.Request) // request of the short tasks
		first  bool
	}{
		{"work of 9.8 h", 4, "carma", model.OrderSJF, nil, true},
		{"work of 10.5 h", 5, "carma", model.OrderSJF, nil, false},
		{"others in order of length", 4, "magm", model.OrderSJF, nil, false},
		{"others in order of submission", 4, "carma", model.OrderFIFO, nil, false},
		{"those of higher priority go first", 4, "carma", model.OrderSJF, high, false},
		{"those of lower priority are work too", 5, "carma", model.OrderSJF, low, true}, // it goes first anyway
	} {
		t.Run(row.name, func(t *testing.T) {
			opt := shortest()
			opt.Policy, opt.Order = row.policy, row.order
			w := newWorld(t, opt, 1)
			hours(w)
			block := w.submit(40*units.GiB, nil)
			w.wantOn(block, 0)
			for range row.short {
				w.expectingWith(30*units.GiB, model.Expected{Loads: loads{tenth}}, func(r *model.Request) {
					kind("h1", "")(r)
					if row.shape != nil {
						row.shape(r)
					}
				})
			}
			long := w.expectingWith(30*units.GiB, model.Expected{Loads: loads{tenth}}, kind("h10", ""))
			w.exit(block, model.ExitOK)
			if got := w.on(long) != nil; got != row.first {
				t.Errorf("the longest is started: %v", got)
			}
		})
	}
}

// TestWorkThatRunsCounts checks that the remaining work of running tasks counts.
func TestWorkThatRunsCounts(t *testing.T) {
	load := interference.Load{SMACT: 0.7}
	for _, row := range []struct {
		runs  string
		first bool
	}{{"m5", true}, {"h5", false}} {
		w := newWorld(t, shortest(), 2)
		hours(w)
		running := w.expectingWith(40*units.GiB, model.Expected{Loads: loads{load}}, kind(row.runs, ""))
		block := w.submit(40*units.GiB, nil)
		w.started(block)
		w.wantOn(running, 0)
		w.wantOn(block, 1)
		for range 3 { // 2.1 of 4 h; after 1.4 h for h2 itself there is room for 1.2 h
			w.expectingWith(30*units.GiB, model.Expected{Loads: loads{{SMACT: 0.3}}}, kind("h1", ""))
		}
		long := w.expectingWith(30*units.GiB, model.Expected{Loads: loads{load}}, kind("h2", ""))
		w.exit(block, model.ExitOK)
		if got := w.on(long) != nil; got != row.first {
			t.Errorf("beside one that takes %s the longest is started: %v", row.runs, got)
		}
	}
}

// TestOfSeveralLongOnes checks that the critical task with the most GPU time goes first.
func TestOfSeveralLongOnes(t *testing.T) {
	w := newWorld(t, shortest(), 2)
	hours(w)
	a, b := w.submit(40*units.GiB, nil), w.submit(40*units.GiB, nil)
	light := model.Expected{Loads: loads{{SMACT: 0.05}}}
	h5 := w.expectingWith(30*units.GiB, light, kind("h5", ""))
	h10 := w.expectingWith(30*units.GiB, light, kind("h10", ""))
	wide := w.expectingWith(30*units.GiB, light, func(r *model.Request) { r.Kind, r.GPUs = "h10", 2 })
	w.step(model.EngineChanged{At: w.now})
	w.exit(a, model.ExitOK)
	w.exit(b, model.ExitOK)
	first := len(w.launches)
	w.look()
	if got := w.launches[first:]; len(got) != 1 || got[0].Task != wide {
		t.Fatalf("launched %+v, want task %d", got, wide)
	}
	w.exit(wide, model.ExitOK)
	w.wantOn(h10, 0)
	w.wantOn(h5, 1)
	if w.launches[first+1].Task != h10 {
		t.Errorf("task %d of 5 h went before task %d of 10 h", h5, h10)
	}
}

// TestLongQueue checks that with more than 16 tasks per GPU in the queue no task is
// started ahead of its place.
func TestLongQueue(t *testing.T) {
	for _, n := range []int{criticalQueue - 1, criticalQueue} { // plus the long task
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			w := newWorld(t, shortest(), 1)
			taught(w, map[string]time.Duration{"long": 100 * time.Hour, "short": time.Second})
			block := w.submit(40*units.GiB, nil)
			for range n {
				w.expectingWith(30*units.GiB, model.Expected{Loads: loads{small}}, kind("short", ""))
			}
			long := w.expectingWith(30*units.GiB, model.Expected{Loads: loads{small}}, kind("long", ""))
			w.exit(block, model.ExitOK)
			if got := w.on(long) != nil; got != (n < criticalQueue) {
				t.Errorf("the longest of %d is started: %v", n+1, got)
			}
		})
	}
}
