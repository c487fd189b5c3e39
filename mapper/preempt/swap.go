package preempt

import (
	"slices"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/mapper/predict"
)

// A swap: a long task is suspended for a short one that waits, if that saves more waiting
// than it costs the others. Host memory, nomination and resumption are as for preemption
// (preempt.go).
const (
	// SwapMost is the longest likely run time of a task for which a longer one is
	// suspended.
	SwapMost = 30 * time.Minute
	// swapGain is the least ratio of the waiting that a swap saves to its cost, and of
	// the remaining time of the victim to the run time of the other; swapLeast is the
	// least waiting saved.
	swapGain  = 2
	swapLeast = 5 * time.Minute
	// swapAway is the largest part of its run time for which a task may be suspended in
	// all if it is suspended for a shorter one.
	swapAway = 0.5
	// swapTries is the largest number of swaps tried in one scheduling cycle.
	swapTries = 8
)

// swaps reports whether a longer task may be suspended for a waiting one, because that is
// known to be short.
func (pre *Preempter) swaps(t *model.Task) bool {
	if !pre.Options().SwapShorter || t.Phase == model.Suspended || t.GPUs != 1 || pre.swapsTried >= swapTries {
		return false
	}
	n, ok := pre.predictor.LongestRun(t)
	if !ok || n > SwapMost {
		return false
	}
	pre.swapsTried++
	return true
}

// swapsFor reports whether a running task is likely to continue for so much longer, and
// was suspended so little, that it may be suspended for a shorter one.
func (pre *Preempter) swapsFor(v, t *model.Task) bool {
	whole, basis := pre.predictor.RunTime(v)
	if basis == predict.Guessed {
		return false
	}
	left, _ := pre.predictor.WorkLeft(v, v.DoneBy(pre.Now()))
	short, _ := pre.predictor.LongestRun(t)
	return left >= swapGain*basis.Lateness()*short.Seconds() && (pre.suspendedTime(v)+short).Seconds() <= swapAway*whole.Seconds()
}

// gains reports whether the waiting that a swap saves is worth its cost to the others.
func (pre *Preempter) gains(t *model.Task, picked []preemption) bool {
	cost := 0.0
	for _, w := range picked {
		cost += w.cost
	}
	if pre.placer.Predicts() { // its own run is in it
		run, _ := pre.predictor.RunTime(t)
		cost -= run.Seconds()
	}
	wait := pre.waitOf(t)
	return wait >= swapLeast.Seconds() && wait >= swapGain*cost
}

// waitOf returns the expected wait of a task for a GPU, in seconds, or 0 if not known:
// each task before it gets one of the GPUs as they become ready.
func (pre *Preempter) waitOf(t *model.Task) float64 {
	var ready []units.Instant
	for _, g := range pre.GPUList() {
		if pre.placer.ReservedForOther(t, g) {
			continue
		}
		if at := pre.placer.TakesAt(t, g); at < units.Never {
			ready = append(ready, at)
		}
	}
	if len(ready) == 0 {
		return 0
	}
	slices.Sort(ready)
	return ready[min(pre.before, len(ready)-1)].Sub(pre.Now()).Seconds()
}
