package predict

import (
	"math"
	"time"

	"carma/mapper/ledger"
	"carma/mapper/model"
)

// times predicts run times. It owns the history of kinds of tasks, and the expected run
// times that follow from it.
type times struct {
	*ledger.Ledger
	history history
	guess   map[string]time.Duration // expected run times of tasks without history, by family

	version  int // incremented when expected run times change; starts at 1
	means    runTimes
	expected ledger.PerTask[expectedRun]
}

// SMWork adds the SM work of a waiting task, in seconds of a whole GPU.
func (rt *times) SMWork(t *model.Task, work float64) float64 {
	run, _ := rt.RunTime(t)
	for i := range t.GPUs {
		work += run.Seconds() * t.LoadOn(i).SMACT
	}
	return work
}

// WorkLeft returns the expected remaining work of a task, in seconds alone on its GPUs. For a
// task that has passed its expected end, it is a share of its finished work (overrunKnown,
// overrunGuessed).
func (rt *times) WorkLeft(t *model.Task, done float64) (float64, Basis) {
	whole, basis := rt.RunTime(t)
	overrun := overrunGuessed
	if basis == Known {
		overrun = overrunKnown
	}
	return max(whole.Seconds()-done, overrun*max(done, whole.Seconds()/overrunPart), 1), basis
}

// A task that has reached its expected end is assumed to continue for this share of its
// finished work: overrunKnown if earlier runs of the task are known, else overrunGuessed.
// At least one part in overrunPart of the expected run time counts as finished.
const (
	overrunKnown   = 0.05
	overrunGuessed = 0.5
	overrunPart    = 5
)

// Lateness returns the factor by which a task may run longer than expected. Two in three of the
// shipped workloads are within a factor of two of their model's median. No decision relies on
// the end of a task with an unknown run time.
func (b Basis) Lateness() float64 {
	return [...]float64{Known: 1, Typical: latenessTypical, Guessed: latenessGuessed}[b]
}

const (
	latenessTypical = 2
	latenessGuessed = 100
)

// Basis is the source of an expected run time.
type Basis int

const (
	Known   Basis = iota // earlier runs of the same task
	Typical              // runs of the same model
	Guessed              // nothing about the task itself
)

// UnknownRun is the run time assumed while no run of any task is known.
const UnknownRun = 30 * time.Minute

// RunTime returns the expected run time of a task alone: the mean of its earlier runs,
// else the typical run time of its model, else the mean of the earlier runs of its
// family, else of all runs.
func (rt *times) RunTime(t *model.Task) (time.Duration, Basis) {
	if t.Pace.Whole > 0 {
		return t.Pace.Whole, Known
	}
	r := rt.expected.Of(t)
	if r.learned != rt.version || r.learned == 0 {
		r.learned = rt.version
		r.time, r.basis = rt.findRunTime(t)
	}
	return r.time, r.basis
}

// expectedRun is the cached result of RunTime.
type expectedRun struct {
	learned int // times.version when it was computed, or 0 if never
	time    time.Duration
	basis   Basis
}

func (rt *times) findRunTime(t *model.Task) (time.Duration, Basis) {
	if e := rt.runs().kinds[t.Kind]; e != nil {
		return e.RunTime, Known
	}
	if t.Expected.RunTime > 0 {
		return t.Expected.RunTime, Typical
	}
	all, family := rt.guesses(t.Family)
	switch {
	case family > 0:
		return family, Typical
	case all > 0:
		return all, Guessed
	}
	return UnknownRun, Guessed
}

// guesses returns the mean run times of all known kinds and of a family, each 0 if not
// known.
func (rt *times) guesses(name string) (all, family time.Duration) {
	if name != everyFamily {
		family = rt.guess[name]
	}
	return rt.guess[everyFamily], family
}

// everyFamily is the name of all families together; no family has this name.
const everyFamily = ""

// guessAgain updates the guesses after the mean run times of a family and of all changed.
// A guess follows its mean in steps, so that not every end of a task changes the order of
// the queue.
func (rt *times) guessAgain(family string) {
	r := rt.runs()
	rt.guessOf(everyFamily, r.all)
	if family != everyFamily {
		rt.guessOf(family, r.families[family])
	}
}

func (rt *times) guessOf(family string, m mean) {
	if m.n == 0 {
		delete(rt.guess, family)
		return
	}
	guess := rt.guess[family]
	if change := m.of() - guess; guess == 0 || max(change, -change) > guess/RunTimeStep {
		if rt.guess == nil {
			rt.guess = map[string]time.Duration{}
		}
		rt.guess[family] = m.of()
	}
}

// runTimes are the run times of the known kinds, with the means over all kinds and over
// each family. They are computed from the history.
type runTimes struct {
	valid    bool
	kinds    map[string]*KindHistory // the known ones; no task has the kind ""
	all      mean
	families map[string]mean
}

func (rt *times) runs() *runTimes {
	r := &rt.means
	if !r.valid {
		*r = runTimes{valid: true, kinds: map[string]*KindHistory{}, families: map[string]mean{}}
		for _, e := range rt.history {
			if e.known() {
				r.kinds[e.Kind] = e
				r.change(e, e.RunTime, 1)
			}
		}
	}
	return r
}

// change adds a run time of a kind n times; n may be negative.
func (r *runTimes) change(e *KindHistory, d time.Duration, n int) {
	r.all = r.all.plus(d, n)
	if m := r.families[e.Family].plus(d, n); m.n > 0 {
		r.families[e.Family] = m
	} else {
		delete(r.families, e.Family)
	}
}

// mean is a mean of times. The sum is in whole milliseconds, so that it does not depend
// on the order in which times are added and removed.
type mean struct {
	milliseconds int64
	n            int
}

func (m mean) plus(d time.Duration, n int) mean {
	return mean{m.milliseconds + int64(n)*d.Milliseconds(), m.n + n}
}

// of returns the mean, at least a millisecond, or 0 of nothing.
func (m mean) of() time.Duration {
	if m.n == 0 {
		return 0
	}
	return max(1, time.Duration(m.milliseconds/int64(m.n))) * time.Millisecond
}

// RoundRunTime rounds guessed seconds to a power of leftStep times UnknownRun, so that tasks
// with nearly equal times are scored once.
func RoundRunTime(seconds float64) float64 {
	steps := math.Round(math.Log(max(1, seconds)/UnknownRun.Seconds()) / math.Log(leftStep))
	return math.Pow(leftStep, steps) * UnknownRun.Seconds()
}

// leftStep is the ratio of two run times that are distinguished.
const leftStep = 1.1

// UpdateWork updates the work that a running task has done up to now.
func (rt *times) UpdateWork(t *model.Task) {
	t.Done, t.PacedAt = t.DoneBy(rt.Now()), rt.Now()
}

// LongestRun returns the longest likely run time of a waiting task, or false if not known.
func (rt *times) LongestRun(t *model.Task) (n time.Duration, ok bool) {
	if run, basis := rt.RunTime(t); basis != Guessed {
		n = time.Duration(min(run.Seconds()*basis.Lateness(), 1e9) * float64(time.Second))
	}
	if t.TimeLimit > 0 && (n == 0 || t.TimeLimit < n) {
		n = t.TimeLimit
	}
	return n, n > 0
}

// KnowsRuns reports whether the run time of any kind is known.
func (rt *times) KnowsRuns() bool { return rt.runs().all.n > 0 }

// Forget drops the cached values of a task's request.
func (rt *times) Forget(t *model.Task) { *rt.expected.Of(t) = expectedRun{} }

// drop drops what follows from the history, and increments the version.
func (rt *times) drop() {
	rt.version, rt.means, rt.expected = rt.version+1, runTimes{}, nil
}
