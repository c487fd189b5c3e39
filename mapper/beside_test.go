package mapper

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/interference"
	"carma/mapper/model"
	"carma/mapper/predict"
)

// predicting returns options with which memory and predictions decide.
func predicting() model.Options {
	opt := plain()
	opt.Policy, opt.SlowdownCap = "carma", predict.DefaultSlowdownCap
	return opt
}

// uncapped returns options without a limit on slowdown.
func uncapped() model.Options {
	opt := predicting()
	opt.SlowdownCap = 100
	return opt
}

type loads = []interference.Load

// unproven returns the cap that allows predictions up to predicted while no measurement
// has proven them.
func unproven(predicted float64) float64 {
	return 1 + (predicted-1)*(predict.DefaultSlowdownCap-1)/(New(DefaultsOf("carma")).predictor.PredictedCap()-1)
}

// capped formats the default cap as in a rejection without proven predictions, less a
// margin.
func capped(margin float64) string {
	return fmt.Sprintf("cap=%.2f", New(predicting()).predictor.PredictedCap()-margin)
}

// expecting submits a task of 1 GiB with a profile. It runs at once if it is placed.
func (w *world) expecting(e model.Expected, edit func(*model.Request)) model.TaskID {
	w.t.Helper()
	return w.expectingWith(units.GiB, e, edit)
}

func (w *world) expectingWith(mem units.Bytes, e model.Expected, edit func(*model.Request)) model.TaskID {
	w.t.Helper()
	id := w.submitOnly(edit)
	w.step(model.Estimated{At: w.now, Task: id, Estimate: model.Estimate{Memory: mem}, Expected: e})
	if w.on(id) != nil {
		w.started(id)
	}
	return id
}

// does submits a task with a load, and of a kind whose run time may be known.
func (w *world) does(l interference.Load, name string) model.TaskID {
	w.t.Helper()
	return w.expecting(model.Expected{Loads: loads{l}}, kind(name, ""))
}

// put does the same as does, but on a given GPU, regardless of the policy.
func (w *world) put(gpu int, l interference.Load, name string) model.TaskID {
	w.t.Helper()
	opt := w.s.Options()
	other := opt
	other.Policy = "magm"
	w.step(model.Configured{At: w.now, Options: other})
	w.openOnly(gpu)
	id := w.does(l, name)
	w.wantOn(id, gpu)
	w.openOnly(-1)
	w.step(model.Configured{At: w.now, Options: opt})
	return id
}

// wantWhy checks that a task waits, and that its reason, formatted by sayWhy, contains the
// text.
func (w *world) wantWhy(id model.TaskID, words ...string) {
	w.t.Helper()
	w.wantOn(id)
	why, _ := w.s.Why(id)
	for _, word := range words {
		if !strings.Contains(sayWhy(why), word) {
			w.t.Errorf("task %d waits because %q, which does not say %q", id, sayWhy(why), word)
		}
	}
}

// hours adds kinds with run times to the history: h1, h2, h5 and h10 in hours, m5, m20 and m30
// in minutes.
func hours(w *world) {
	w.t.Helper()
	taught(w, map[string]time.Duration{
		"h1": time.Hour, "h2": 2 * time.Hour, "h5": 5 * time.Hour, "h10": 10 * time.Hour,
		"m5": 5 * time.Minute, "m20": 20 * time.Minute, "m30": 30 * time.Minute,
	})
}

// TestCapIsOfTheWholeRun checks that a task of known length may be slowed down by more than the
// cap for a small part of its run. For a task of unknown length, the slowdown is computed as if
// all neighbours stayed.
func TestCapIsOfTheWholeRun(t *testing.T) {
	for _, row := range []struct {
		name, there, comes string
		why                string // empty if the task may join
	}{
		{"both known", "h10", "m20", ""},
		{"the neighbour's end is not known", "?", "m20", "0 of 1: GPU 0 slowdown task=8 2.55 " + capped(0)},
		{"the newcomer's end is not known", "h10", "?", "0 of 1: GPU 0 slowdown task=8 2.55 " + capped(0)},
		{"too large a part", "h1", "h1", "0 of 1: GPU 0 slowdown task=8 1.62 " + capped(aimMargin)},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld(t, predicting(), 1)
			hours(w)
			w.wantOn(w.does(small, row.there), 0)
			id := w.does(vgg128, row.comes)
			if row.why == "" {
				w.wantOn(id, 0)
			} else {
				w.wantWhy(id, row.why)
			}
		})
	}
}

// TestCapCountsWhatWasLost checks that the slowdown by earlier neighbours counts too, even if
// each of many short neighbours alone slows it down only a little.
func TestCapCountsWhatWasLost(t *testing.T) {
	w := newWorld(t, predicting(), 1)
	hours(w)
	a := w.does(small, "h1")
	for range 2 {
		b := w.does(vgg128, "m20")
		w.wantOn(b, 0)
		w.wait(20 * time.Minute)
		w.exit(b, model.ExitOK)
	}
	c := w.does(vgg128, "m20")
	w.wantWhy(c, "GPU 0 slowdown task="+a.String()+" 1.61 "+capped(aimMargin))
}

// TestSlowAlready checks that a task already over the cap may get neighbours that do not
// make it slower.
func TestSlowAlready(t *testing.T) {
	w := newWorld(t, predicting(), 1)
	w.put(0, small, "")
	w.put(0, vgg128, "")
	w.wantWhy(w.does(small, ""), "GPU 0 slowdown task=0 ")
	w.wantOn(w.does(nothing, ""), 0)
}

// TestLeastAddedCountsNeighbours checks that the delay of all tasks decides between GPUs, not
// only the new task's own delay.
func TestLeastAddedCountsNeighbours(t *testing.T) {
	w := newWorld(t, uncapped(), 2)
	hours(w)
	w.put(0, small, "h10")         // the new task would be delayed by 1 min, the neighbour by 37
	soon := w.put(1, resnet, "m5") // the new task would be delayed by 2 min, the neighbour by 7
	id := w.does(vgg128, "h1")
	w.wantOn(id, 1)
	own := func(gpu int) float64 {
		clone := w.s.Clone()
		g := clone.GPU(gpuID(gpu))
		if gpu == 1 { // as before the new task was placed
			clone.GPU(gpuID(1)).Remove(id)
			clone.predictor.TasksChanged([]*model.GPU{g})
		}
		return clone.placer.FinishSeconds(clone.TaskByID(id), g)
	}
	if own(0) >= own(1) {
		t.Errorf("beside task %d it ends after %.0f s, beside the other after %.0f: this tests nothing", soon, own(1), own(0))
	}
}

// TestNeighbourThatEndsSoon checks that a new task is hardly delayed beside a task that ends
// soon, for any load of that task.
func TestNeighbourThatEndsSoon(t *testing.T) {
	w := newWorld(t, uncapped(), 2)
	hours(w)
	w.put(1, resnet, "h2")
	w.wait(115 * time.Minute)
	w.put(0, resnet, "h1")
	w.wantOn(w.does(resnet, "m30"), 1)
}

// TestWaitOrShare checks that a task waits for one of two residents to end if that delays the
// tasks less than running all three at once.
func TestWaitOrShare(t *testing.T) {
	for _, row := range []struct {
		comes string
		waits bool
	}{{"m5", false}, {"h1", true}, {"h10", false}} {
		t.Run(row.comes, func(t *testing.T) {
			w := newWorld(t, uncapped(), 1)
			hours(w)
			a := w.put(0, vgg128, "h1")
			w.put(0, vgg128, "h1")
			id := w.does(vgg128, row.comes)
			if !row.waits {
				w.wantOn(id, 0)
				return
			}
			w.wantWhy(id, "0 of 1: GPU 0 wait tasks=2")
			w.wait(100 * time.Minute)
			w.exit(a, model.ExitOK)
			w.wantOn(id, 0)
		})
	}
}

// TestAvoidsWhereItFailed checks that a GPU on which a task's infrastructure failed is used
// again only if the other GPUs would be too slow.
func TestAvoidsWhereItFailed(t *testing.T) {
	for _, row := range []struct {
		there interference.Load // on the other GPU
		want  int
	}{{small, 1}, {vgg128, 0}} {
		w := newWorld(t, predicting(), 2)
		w.put(1, row.there, "")
		id := w.does(small, "")
		w.wantOn(id, 0)
		w.exit(id, model.ExitInfrastructure)
		w.wait(time.Minute)
		w.wantOn(id, row.want)
	}
}

// TestLeastAddedOfMachines checks that a task on two GPUs gets the machine where both
// together are best, not the one with the single best GPU.
func TestLeastAddedOfMachines(t *testing.T) {
	var all []model.GPUInfo
	for i, node := range []string{"a", "a", "b", "b"} {
		all = append(all, model.GPUInfo{ID: gpuID(i), Node: node, Index: i, Capacity: 40 * units.GiB})
	}
	w := newWorldOf(t, uncapped(), all...)
	w.put(1, vgg128, "")
	w.put(2, small, "")
	w.put(3, small, "")
	w.wantOn(w.expecting(model.Expected{Loads: loads{small}}, gpus(2)), 2, 3)
	w.wantOn(w.does(small, ""), 0)
}

// TestVerdicts checks that the early verdict about a placement equals the full score's.
func TestVerdicts(t *testing.T) {
	verdicts := map[model.Rule]int{}
	for seed := range uint64(6) {
		l := newLab(DefaultsOf("carma"), seed, 24, 60)
		for range 60 {
			l.fill(120)
			for range 40 {
				l.note(l.s.Step(l.next()))
			}
			early, whole := l.s.Clone(), l.s.Clone() // without cached results
			for i, waiting := range l.s.Tasks() {
				id := waiting.ID
				if waiting.Phase != model.Queued {
					continue
				}
				for k, candidate := range early.placer.View().Candidates(early.TaskByID(id)) {
					g := i % len(early.GPUList())
					got := early.placer.View().SlowdownRule(early.GPUList()[g], candidate)
					_, want := whole.placer.View().Added(whole.GPUList()[g], whole.placer.View().Candidates(whole.TaskByID(id))[k])
					if verdicts[got]++; got != want {
						t.Fatalf("seed %d: task %d on %s: %q early, %q whole", seed, id, l.s.GPUList()[g].ID, got, want)
					}
				}
			}
		}
	}
	if verdicts[""] < 500 || verdicts[model.RuleSlowdown] < 500 || verdicts[model.RuleWait] == 0 {
		t.Errorf("not enough of each: %v", verdicts)
	}
}
