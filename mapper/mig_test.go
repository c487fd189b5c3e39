package mapper

import (
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
)

// TestPartsOfCards checks that a task on several GPUs gets whole cards, because a program can
// use only one MIG instance at a time. If there are too few whole cards, it waits with that
// reason.
func TestPartsOfCards(t *testing.T) {
	card := func(i int, part bool) model.GPUInfo {
		return model.GPUInfo{ID: gpuID(i), Index: i, Capacity: 40 * units.GiB, MIG: part}
	}
	w := newWorldOf(t, plain(), card(0, true), card(1, true), card(2, false), card(3, false))
	if n := w.s.MostGPUs(); n != 2 {
		t.Errorf("one task can have %d GPUs", n)
	}
	pair := w.submit(units.GiB, gpus(2))
	w.wantOn(pair, 2, 3)
	// Pinning does not place it on an instance either.
	w.step(model.Pinned{At: w.now, Task: pair, GPUs: []model.GPUID{gpuID(0), gpuID(1)}})
	if task, _ := w.s.Task(pair); len(task.Pinned) > 0 || task.Recall != nil {
		t.Errorf("it was sent to two parts: %+v", task)
	}
	one := w.submit(39*units.GiB, nil)
	w.wantOn(one, 0)
	w.step(model.GPUsFound{At: w.now, GPUs: []model.GPUInfo{card(0, true), card(1, true)}})
	w.exit(pair, model.ExitInfrastructure)
	w.wait(time.Minute)
	why, ok := w.s.Why(pair)
	if !ok || why.Binding.Code != model.ReasonTurnedDown && why.Binding.Code != model.ReasonOnlyParts {
		t.Fatalf("it waits for %+v, %v", why.Binding, ok)
	}
	for _, r := range why.Rejected {
		if want := map[model.GPUID]model.Rule{gpuID(0): model.RulePart, gpuID(1): model.RulePart, gpuID(2): model.RuleFault, gpuID(3): model.RuleFault}[r.GPU]; r.Rule != want {
			t.Errorf("%s turns it down by %s, want %s", r.GPU, r.Rule, want)
		}
	}
}
