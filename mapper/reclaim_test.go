package mapper

import (
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
)

// shrinking returns options with which grants are cut after five minutes.
func shrinking() model.Options {
	opt := plain()
	opt.Shrink = 5 * time.Minute
	return opt
}

// uses sends a sample of the use of one task on GPU-0.
func (w *world) uses(id model.TaskID, used units.Bytes) {
	w.t.Helper()
	w.sample(model.GPUSample{ID: "GPU-0", Used: used, Tasks: []model.TaskUse{{Task: id, Used: used}}})
}

// wantGrant checks a task's grant, also in the ledger.
func (w *world) wantGrant(id model.TaskID, want units.Bytes) {
	w.t.Helper()
	grant := w.task(id).Current().Grants[0]
	if booked := w.s.GPU(grant.GPU).Resident(id).Grant; grant.Memory != want || booked != want {
		w.t.Errorf("task %d is granted %s, and %s in the ledger, want %s", id, grant.Memory, booked, want)
	}
}

// TestGrantIsCutToWhatIsUsed checks that unused memory of a task is free for others once
// the task has not grown for the configured time, and no sooner.
func TestGrantIsCutToWhatIsUsed(t *testing.T) {
	w := newWorld(t, shrinking(), 1)
	a := w.submit(30*units.GiB, nil)
	w.started(a)
	w.wait(time.Minute)
	w.uses(a, 10*units.GiB)
	left := 40*units.GiB - (10 * units.GiB).Scale(1.05)
	b := w.submit(left, nil)
	w.wait(5*time.Minute - 1)
	w.wantGrant(a, 30*units.GiB)
	w.wantOn(b)
	w.wait(1)
	w.wantGrant(a, (10 * units.GiB).Scale(1.05))
	w.wantOn(b, 0)
	if g := w.gpu(0); g.Reserved != 40*units.GiB {
		t.Errorf("%s are reserved", g.Reserved)
	}
}

// TestGrowthPutsTheCutOff checks that the time counts from the last growth. A sample with less
// or equal use is no growth.
func TestGrowthPutsTheCutOff(t *testing.T) {
	w := newWorld(t, shrinking(), 1)
	a := w.submit(30*units.GiB, nil)
	w.started(a)
	w.uses(a, 10*units.GiB)
	w.wait(4 * time.Minute)
	w.uses(a, 12*units.GiB)
	w.wait(2 * time.Minute)
	w.uses(a, 12*units.GiB)
	w.uses(a, 2*units.GiB)
	w.wait(3*time.Minute - 1)
	w.wantGrant(a, 30*units.GiB)
	w.wait(1)
	w.wantGrant(a, (12 * units.GiB).Scale(1.05)) // from the highest use, not the last
}

// TestGrantIsNotCut lists cases in which a cut frees too little memory or helps no task.
func TestGrantIsNotCut(t *testing.T) {
	for _, row := range []struct {
		name  string
		edit  func(*model.Options)
		alone func(*model.Request)
		grant units.Bytes
		used  units.Bytes
		want  units.Bytes
	}{
		{"it is off", func(o *model.Options) { o.Shrink = 0 }, nil, 30 * units.GiB, units.GiB, 30 * units.GiB},
		{"it is alone", nil, whole, 30 * units.GiB, units.GiB, 40 * units.GiB},
		{"it uses nearly all", nil, nil, 21 * units.GiB, 20 * units.GiB, 21 * units.GiB},
		{"a little more than nearly all", nil, nil, 21*units.GiB + 1, 20 * units.GiB, 21 * units.GiB},
		{"it uses more", nil, nil, 10 * units.GiB, 20 * units.GiB, 10 * units.GiB},
		{"nothing was seen", nil, nil, 30 * units.GiB, 0, 30 * units.GiB},
		{"256 MiB are left to a small one", nil, nil, 30 * units.GiB, units.GiB, units.GiB + 256*units.MiB},
	} {
		t.Run(row.name, func(t *testing.T) {
			opt := shrinking()
			if row.edit != nil {
				row.edit(&opt)
			}
			w := newWorld(t, opt, 1)
			a := w.submit(row.grant, row.alone)
			w.started(a)
			w.uses(a, row.used)
			w.wait(time.Hour)
			w.look()
			w.wantGrant(a, row.want)
		})
	}
}

// TestCutGrantThatIsOutgrown checks that use beyond a cut grant counts as taken, so that no
// task is placed in this memory.
func TestCutGrantThatIsOutgrown(t *testing.T) {
	w := newWorld(t, shrinking(), 1)
	a := w.submit(30*units.GiB, nil)
	w.started(a)
	w.uses(a, 10*units.GiB)
	w.wait(5 * time.Minute)
	w.uses(a, 25*units.GiB)
	w.wait(time.Hour)
	w.wantGrant(a, (10 * units.GiB).Scale(1.05)) // it does not grow again
	b := w.submit(15*units.GiB+1, nil)
	w.wantOn(b)
	if got := w.whyNot(b, 0); got.Rule != model.RuleMemory || got.Have != 25*units.GiB {
		t.Errorf("turned down for %+v", got)
	}
	w.wantOn(w.submit(15*units.GiB, nil), 0)
}

// TestCutIsOfOneGPU checks that each GPU of a task keeps the memory needed there.
func TestCutIsOfOneGPU(t *testing.T) {
	w := newWorld(t, shrinking(), 2)
	a := w.submit(30*units.GiB, gpus(2))
	w.started(a)
	w.sample(model.GPUSample{ID: "GPU-0", Used: 20 * units.GiB, Tasks: []model.TaskUse{{Task: a, Used: 20 * units.GiB}}},
		model.GPUSample{ID: "GPU-1", Used: 10 * units.GiB, Tasks: []model.TaskUse{{Task: a, Used: 10 * units.GiB}}})
	w.wait(5 * time.Minute)
	for i, want := range []units.Bytes{21 * units.GiB, (10 * units.GiB).Scale(1.05)} {
		if got := w.task(a).Current().Grants[i].Memory; got != want || w.gpu(i).Reserved != want {
			t.Errorf("on GPU %d it is granted %s, want %s", i, got, want)
		}
	}
}

// TestShrinkConfigured checks that a longer time also applies to grants that were about
// to be cut.
func TestShrinkConfigured(t *testing.T) {
	w := newWorld(t, shrinking(), 1)
	a := w.submit(30*units.GiB, nil)
	w.started(a)
	w.uses(a, 10*units.GiB)
	opt := shrinking()
	opt.Shrink = time.Hour
	w.step(model.Configured{At: w.now, Options: opt})
	w.wait(time.Hour - 1)
	w.wantGrant(a, 30*units.GiB)
	w.wait(1)
	w.wantGrant(a, (10 * units.GiB).Scale(1.05))
}
