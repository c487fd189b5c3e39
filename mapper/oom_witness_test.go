package mapper

import (
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/model"

	"pgregory.net/rapid"
)

// TestOneWitnessGivesNoGPU checks that a task whose OOMs are reported by one source only
// never gets an exclusive GPU, and ends.
func TestOneWitnessGivesNoGPU(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		opt := plain()
		opt.Headroom = units.GiB
		w := newWorld(t, opt, 2)
		id := w.submit(units.Bytes(rapid.IntRange(0, 30).Draw(rt, "GiB"))*units.GiB, nil)
		for range 20 {
			if _, ended := w.finished[id]; ended {
				return
			}
			w.started(id)
			w.exitWith(model.Exited{
				Task: id, Code: 1, Class: rapid.SampledFrom([]model.Class{model.ExitGPUOOM, model.ExitSuspectedOOM}).Draw(rt, "class"), Unconfirmed: true,
				Peak:   rapid.SampledFrom([]units.Bytes{0, 5 * units.GiB, 38 * units.GiB}).Draw(rt, "peak"),
				Demand: rapid.SampledFrom([]units.Bytes{0, 12 * units.GiB, 39 * units.GiB, 60 * units.GiB}).Draw(rt, "demand"),
			})
			for _, l := range w.launches {
				if l.Alone {
					rt.Fatalf("launched alone: %+v", l)
				}
			}
			w.wait(time.Hour)
		}
		rt.Fatal("the task never ends")
	})
}

// TestConfirmedOOMGetsAGPU checks that with two sources the last attempt gets exclusive
// GPUs.
func TestConfirmedOOMGetsAGPU(t *testing.T) {
	w := newWorld(t, plain(), 2)
	id := w.submit(8*units.GiB, nil)
	for i := range 3 {
		w.started(id)
		w.exitWith(model.Exited{Task: id, Class: model.ExitGPUOOM, Unconfirmed: i != 1})
	}
	if task := w.task(id); !task.NextExclusive || !task.ConfirmedOOM {
		t.Errorf("after a confirmed OOM the last attempt is not alone: %+v", task)
	}
}

// TestSuspectedOnce checks that a suspected OOM gives more memory once; the next one is
// the program's own failure.
func TestSuspectedOnce(t *testing.T) {
	w := newWorld(t, plain(), 1)
	id := w.submit(8*units.GiB, nil)
	w.started(id)
	w.exitWith(model.Exited{Task: id, Class: model.ExitSuspectedOOM, Code: 1, Message: "perhaps out of memory"})
	if r := w.requeued[0]; r.Need != 11*units.GiB || r.Alone || r.Reason.Code != model.ReasonOOMSuspected {
		t.Fatalf("requeued as %+v", r)
	}
	w.started(id)
	w.exitWith(model.Exited{Task: id, Class: model.ExitSuspectedOOM, Code: 1, Message: "perhaps out of memory"})
	if task, ended := w.finished[id]; !ended || task.Phase != model.Failed || task.Reason.Code != model.ReasonProgram || task.OOMs != 0 {
		t.Errorf("after the second: %+v", task)
	}
}

// TestOveruseNeverCostsTheVictim checks that an OOM beside a neighbour that exceeded its grant
// does not count against the victim, even if the neighbour ended first or its use fell again.
func TestOveruseNeverCostsTheVictim(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		opt := plain()
		opt.Watchdog = rapid.SampledFrom(model.Watchdogs).Draw(rt, "watchdog")
		w := newWorld(t, opt, 1)
		over, victim := w.submit(10*units.GiB, nil), w.submit(25*units.GiB, nil)
		w.started(over)
		w.started(victim)
		use := func(n units.Bytes) {
			w.step(model.Sampled{At: w.now, GPUs: []model.GPUSample{{ID: gpuID(0), Used: 40 * units.GiB, Tasks: []model.TaskUse{{Task: over, Used: n}, {Task: victim, Used: 12 * units.GiB}}}}})
		}
		use(units.Bytes(rapid.IntRange(16, 28).Draw(rt, "GiB")) * units.GiB)
		switch rapid.IntRange(0, 2).Draw(rt, "then") {
		case 1:
			w.exitWith(model.Exited{Task: over, Class: rapid.SampledFrom([]model.Class{model.ExitOK, model.ExitProgram, model.ExitGPUOOM}).Draw(rt, "neighbour's end")})
		case 2:
			w.now = w.now.Add(time.Second)
			use(9 * units.GiB)
		}
		w.now = w.now.Add(time.Duration(rapid.IntRange(0, 5).Draw(rt, "seconds")) * time.Second)
		w.exitWith(model.Exited{Task: victim, Class: rapid.SampledFrom([]model.Class{model.ExitGPUOOM, model.ExitSuspectedOOM}).Draw(rt, "class"), Unconfirmed: rapid.Bool().Draw(rt, "unconfirmed")})
		if task := w.task(victim); task.OOMs != 0 || task.NextExclusive || task.Suspected || !task.Attempts[0].NotAtFault {
			rt.Fatalf("it cost the victim: %+v", task)
		}
	})
}
