package mapper

import (
	"math"
	"time"

	"carma/mapper/interference"
	"carma/mapper/model"
)

// basis says on what an expected run time is based.
type basis int

const (
	known   basis = iota // earlier runs of the same task
	typical              // runs of the same model
	guessed              // nothing about the task itself
)

// unknownRun is the run time assumed while no run of any task is known.
const unknownRun = 30 * time.Minute

// runTime returns the expected run time of a task alone: the mean of its earlier runs,
// else the typical run time of its model, else the mean of the earlier runs of its
// family, else of all runs.
func (pr *predictor) runTime(t *model.Task) (time.Duration, basis) {
	if t.Pace.Whole > 0 {
		return t.Pace.Whole, known
	}
	r := pr.derived.runTimes.Of(t)
	if r.learned != pr.derived.timed || r.learned == 0 {
		r.learned = pr.derived.timed
		r.time, r.basis = pr.findRunTime(t)
	}
	return r.time, r.basis
}

// expectedRun is the cached result of runTime.
type expectedRun struct {
	learned int // cache.timed when it was computed, or 0 if never
	time    time.Duration
	basis   basis
}

func (pr *predictor) findRunTime(t *model.Task) (time.Duration, basis) {
	if e := pr.runs().kinds[t.Kind]; e != nil {
		return e.RunTime, known
	}
	if t.Expected.RunTime > 0 {
		return t.Expected.RunTime, typical
	}
	all, family := pr.guesses(t.Family)
	switch {
	case family > 0:
		return family, typical
	case all > 0:
		return all, guessed
	}
	return unknownRun, guessed
}

// guesses returns the mean run times of all known kinds and of a family, each 0 if not
// known.
func (pr *predictor) guesses(name string) (all, family time.Duration) {
	if name != everyFamily {
		family = pr.guess[name]
	}
	return pr.guess[everyFamily], family
}

// everyFamily is the name of all families together; no family has this name.
const everyFamily = ""

// guessAgain updates the guesses after the mean run times of a family and of all changed.
// A guess follows its mean in steps, so that not every end of a task changes the order of
// the queue.
func (pr *predictor) guessAgain(family string) {
	r := pr.runs()
	pr.guessOf(everyFamily, r.all)
	if family != everyFamily {
		pr.guessOf(family, r.families[family])
	}
}

func (pr *predictor) guessOf(family string, m mean) {
	if m.n == 0 {
		delete(pr.guess, family)
		return
	}
	guess := pr.guess[family]
	if change := m.of() - guess; guess == 0 || max(change, -change) > guess/runTimeStep {
		if pr.guess == nil {
			pr.guess = map[string]time.Duration{}
		}
		pr.guess[family] = m.of()
	}
}

// runTimes are the run times of the known kinds, with the means over all kinds and over
// each family. They are computed from the history.
type runTimes struct {
	valid    bool
	kinds    map[string]*kindHistory // the known ones; no task has the kind ""
	all      mean
	families map[string]mean
}

func (pr *predictor) runs() *runTimes {
	r := &pr.derived.runs
	if !r.valid {
		*r = runTimes{valid: true, kinds: map[string]*kindHistory{}, families: map[string]mean{}}
		for _, e := range pr.history {
			if e.known() {
				r.kinds[e.Kind] = e
				r.change(e, e.RunTime, 1)
			}
		}
	}
	return r
}

// change adds a run time of a kind n times; n may be negative.
func (r *runTimes) change(e *kindHistory, d time.Duration, n int) {
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

// inSteps rounds guessed seconds to a power of leftStep times unknownRun, so that tasks
// with nearly equal times are scored once.
func inSteps(seconds float64) float64 {
	steps := math.Round(math.Log(max(1, seconds)/unknownRun.Seconds()) / math.Log(leftStep))
	return math.Pow(leftStep, steps) * unknownRun.Seconds()
}

// leftStep is the ratio of two run times that are distinguished.
const leftStep = 1.1

// observe adds the activity of a GPU to the observed load of its only task. It uses the
// scores that were valid up to now, so call it before they change.
func (pr *predictor) observe(g *model.GPU) {
	if len(g.Residents) != 1 || !pr.settled(g) || g.Coarse {
		return
	}
	r := &g.Residents[0]
	r.Observed.Add(g, max(r.Observed.Until, g.SamplesValidFrom()), pr.Now())
}

// learnLoads sets the load of tasks whose activity is a guess. Once the tasks on a GPU
// have been the same for a while, the known tasks account for a part of the sampled
// activity, and the others for the rest, in equal parts. That rest then becomes their
// load, also for a later attempt.
func (ln *learner) learnLoads() {
	for _, g := range ln.GPUList() {
		if g.SeenAt == g.ChangedAt || !ln.predictor.settled(g) || g.Idle() || ln.predictor.loading(g) {
			continue
		}
		g.SeenAt = g.ChangedAt
		ln.compareDeclared(g)
		if r := &g.Residents[0]; len(g.Residents) == 1 && !r.Unseen && !g.Coarse && g.SMACT > r.Load.SMACT+surprise && g.OtherProcesses == 0 {
			ln.observed(g, r, interference.Load{SMACT: g.SMACT, SMOCC: g.SMOCC, DRAMA: g.DRAMA, Step: r.Load.Step}, seenDoubt) // samples do not show the step time
			continue
		}
		ln.attributeLoad(g)
		ln.preempter.evictSlowing(g)
	}
}

// unseen returns a task whose activity on a GPU is not known yet, or 0.
func (pr *predictor) unseen(g *model.GPU) model.TaskID {
	for i := range g.Residents {
		if g.Residents[i].Unseen {
			return g.Residents[i].Task
		}
	}
	return 0
}

// surprise: if a task that is alone shows this much more SM activity than expected, the
// samples replace its load. Less activity than expected changes nothing, because the task
// may have paused to read data.
const surprise = 0.05

// unknownLeast is the least SM activity assumed for a task without history, for
// the same reason.
const unknownLeast = 0.10

// settled reports whether the tasks on a GPU have been the same for so long that the
// samples show only these.
func (pr *predictor) settled(g *model.GPU) bool { return pr.Now() >= g.SamplesValidFrom() }

// observedLoad returns the observed activity of a task that ends now on each of its GPUs.
// It returns nothing unless the task was alone on all of them for a while.
func (pr *predictor) observedLoad(t *model.Task) (all []interference.Load) {
	for _, grant := range t.Current().Grants {
		g := pr.GPU(grant.GPU)
		pr.observe(g)
		r := g.Resident(t.ID)
		n := r.Observed.Seconds
		if n < aloneLeast {
			return nil
		}
		all = append(all, interference.Load{
			SMACT: r.Observed.SMACT / n, SMOCC: r.Observed.SMOCC / n, DRAMA: r.Observed.DRAMA / n,
			Step: r.Load.Step, // samples do not show the step time
		})
	}
	return all
}

// aloneLeast is the time, in seconds, for which a task must have been observed alone
// before its activity is stored in the history.
const aloneLeast = 300
