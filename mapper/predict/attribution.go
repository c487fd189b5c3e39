package predict

import (
	"math"

	"carma/mapper/interference"
	"carma/mapper/model"
)

// AttributeLoad estimates the activity of the tasks on a GPU whose activity is not measured:
// the task placed last, and others placed within the same minute, which are assumed to be
// equally busy. It picks the activity that best explains the samples of the GPU and the
// measured slowdown of the neighbours. The slowdown is needed because two tasks with nearly the
// same activity may slow their neighbours down very differently. It returns the tasks whose
// load was not known before.
func (pr *Predictor) AttributeLoad(g *model.GPU) (known []*model.Task) {
	var strangers []int
	for i := range g.Residents {
		if r := &g.Residents[i]; r.Unseen || r.Bound && !g.Coarse {
			strangers = append(strangers, i)
		}
	}
	if len(strangers) == 0 {
		if known, sought := pr.attributeAgain(g); sought {
			return known
		}
	}
	declared := -1.0
	if last := len(g.Residents) - 1; len(strangers) == 0 && len(g.Residents) > 1 {
		strangers = append(strangers, last)
		if e := &pr.TaskByID(g.Residents[last].Task).Expected; len(e.Loads) > 0 && (g.Coarse || e.Source != model.SourceSeen) {
			declared = g.Residents[last].Load.SMACT
		}
	}
	if len(strangers) == 0 {
		return nil
	}
	x := pr.attribution(g, strangers)
	x.declared = declared >= 0
	if x.declared && x.explained() {
		return nil
	}
	best, doubt := x.seek(declared)
	if declared >= 0 {
		r := &g.Residents[strangers[0]]
		if working := pr.TaskByID(r.Task).Pace.Rate > 0; best.SMACT > declared+declaredLeast || working && best.SMACT < declared-declaredLeast { // otherwise it may be reading data
			best.Step = r.Load.Step
			r.Load = best
			if !g.Coarse {
				pr.TaskByID(r.Task).SetExpectedLoad(g, best)
			}
			pr.UpdateSpeeds([]*model.GPU{g})
		}
		return nil
	}
	if g.Coarse && !x.measures() {
		doubt = max(doubt, model.CoarseDoubt)
	}
	if len(strangers) > 1 {
		doubt = max(doubt, MixedDoubt)
	}
	for _, i := range strangers {
		r := &g.Residents[i]
		r.Believed, r.BelievedAt = model.Posterior{}, g.ChangedAt
		known = append(known, pr.observed(g, r, best, doubt)...)
	}
	return known
}

// Candidate activities are tried first in steps of soughtWide, then around the best one in
// steps of soughtStep.
const (
	mostSought = 0.96
	soughtWide = 0.04
	soughtStep = 0.01
)

// seek finds the load that best explains the samples, and its uncertainty. declared is the SM
// activity expected before the task ran, or negative if none was. If several activities explain
// the samples nearly equally well, seek returns their mean weighted by likelihood. This happens
// on a GPU that is full even without the task.
func (x *attribution) seek(declared float64) (best interference.Load, doubt float64) {
	least, lightest := math.Inf(1), UnknownLeast
	if x.several {
		lightest = leastOfSeveral
	}
	if declared >= 0 {
		lightest = min(lightest, declared)
	}
	var space [64]attributionTry
	tried := space[:0]
	try := func(sm float64) {
		load, misfit := x.misfit(sm)
		if declared >= 0 {
			misfit += (sm - declared) * (sm - declared) / (declaredDoubt * declaredDoubt)
		}
		if tried = append(tried, attributionTry{sm, misfit}); misfit < least {
			best, least = load, misfit
		}
	}
	for sm := lightest; sm < mostSought; sm += soughtWide {
		try(sm)
	}
	if mean, sd := meanOf(tried, least); sd > Doubtful && declared < 0 && !x.g.Coarse {
		best, _ = x.misfit(mean)
		return best, sd
	}
	around := best.SMACT
	for sm := around - soughtWide + soughtStep; sm < min(around+soughtWide, mostSought); sm += soughtStep {
		if sm >= lightest && math.Abs(sm-around) > soughtStep/2 {
			try(sm)
		}
	}
	doubt = SeenDoubt
	for _, one := range tried {
		if one.misfit < least+1 {
			doubt = max(doubt, one.sm-best.SMACT)
		}
	}
	return best, doubt
}

// attributionTry is an SM activity that was tried, with its misfit.
type attributionTry struct{ sm, misfit float64 }

// meanOf returns the mean of activities tried in equal steps, each weighted by its
// likelihood, and their standard deviation. least is the least misfit.
func meanOf(tried []attributionTry, least float64) (mean, sd float64) {
	sum, squares := 0.0, 0.0
	for _, one := range tried {
		likely := math.Exp((least - one.misfit) / 2)
		sum, mean, squares = sum+likely, mean+likely*one.sm, squares+likely*one.sm*one.sm
	}
	mean /= sum
	return mean, math.Sqrt(max(0, squares/sum-mean*mean))
}

// The standard deviation of an estimated activity, for a single new task and for several new
// tasks at once.
const (
	SeenDoubt  = 0.03
	MixedDoubt = 0.12
)

// declaredDoubt is the standard deviation of an SM activity that was declared or known before
// the task ran. A measurement replaces it if it differs by at least declaredLeast.
const (
	declaredDoubt = 0.05
	declaredLeast = 0.03
)

// attribution holds the tasks on a GPU while the activity of some of them (strangers) is
// estimated.
type attribution struct {
	p         *Predictor
	g         *model.GPU
	strangers []bool
	step      float64
	several   bool       // they are on several GPUs
	declared  bool       // their activity was known before, and is only corrected
	mix       ClassPrior // the likely classes of the strangers, and the activity assumed before
	belief    model.Posterior
	prior     float64 // their likely SM activity, or 0 if not known
	demands   []Demand
	measured  []float64 // log of the speed, or NaN if it is not measured
	sd        []float64
}

func (pr *Predictor) attribution(g *model.GPU, strangers []int) *attribution {
	x := &attribution{p: pr, g: g, strangers: make([]bool, len(g.Residents))}
	for _, i := range strangers {
		x.strangers[i] = true
		t := pr.TaskByID(g.Residents[i].Task)
		x.step, x.several, x.mix = t.StepTime(), t.GPUs > 1, pr.Prior(t)
		if likely, ok := pr.likely(t); ok {
			x.prior = likely
		}
	}
	for i := range g.Residents {
		r := &g.Residents[i]
		t := pr.TaskByID(r.Task)
		x.demands = append(x.demands, pr.Demand(r.Load, t))
		m, sd := math.NaN(), 0.0
		if p := &t.Pace; p.Alone > 0 && p.Rate > 0 && p.Since >= g.ChangedAt && !x.strangers[i] && t.GPUs == 1 {
			m, sd = min(0, math.Log(p.Rate/p.Alone)), math.Hypot(math.Hypot(p.Error, p.RateError), pairError)
		}
		x.measured, x.sd = append(x.measured, m), append(x.sd, sd)
	}
	return x
}

// pairError is the error of the model for a pair of tasks, as a log of the speed.
const pairError = 0.12

// ScoreError is the error of a monitor's score on a shared GPU, including the error of
// the neighbours' assumed contributions.
const ScoreError = 0.03

// misfit returns the deviation of the samples from the prediction with this SM activity of the
// strangers, and the load with this activity.
func (x *attribution) misfit(sm float64) (interference.Load, float64) {
	load := interference.Load{SMACT: sm, Step: x.step}
	var speeds []float64
	for range 2 { // the second time with its DRAM activity
		for i := range x.strangers {
			if x.strangers[i] {
				x.demands[i] = x.p.Demand(load, x.p.TaskByID(x.g.Residents[i].Task))
			}
		}
		speeds = x.p.SharingMode(x.g).Speeds(speeds[:0], x.demands)
		dram, occ, part := x.g.DRAMA, x.g.SMOCC, 0.0
		for i := range x.strangers {
			if x.strangers[i] {
				part += speeds[i]
				continue
			}
			dram -= x.g.Residents[i].Load.DRAMA * speeds[i]
			occ -= x.g.Residents[i].Load.SMOCC * speeds[i]
		}
		load.DRAMA, load.SMOCC = model.Fraction(dram/part), model.Fraction(occ/part)
		if x.g.Coarse {
			load = typicalOf(load)
		}
	}
	total, sum := 0.0, 0.0
	for i := range x.strangers {
		if x.strangers[i] {
			total += sm * speeds[i]
		} else {
			total += x.g.Residents[i].Load.SMACT * speeds[i]
		}
		if !math.IsNaN(x.measured[i]) {
			off := (math.Log(speeds[i]) - x.measured[i]) / x.sd[i]
			sum += off * off
		}
	}
	sum += x.timed(load, speeds)
	if x.g.Coarse {
		return load, sum + x.coarsely(total, load, speeds)
	}
	if !x.declared && len(x.demands) > 1 { // if the task is alone, samples show all of its activity
		sum += against(x.belief, sm, x.mix)
	}
	off := (min(total, 1) - x.g.SMACT) / ScoreError
	return load, sum + off*off
}

// explained reports whether the expected loads of all tasks explain the samples.
func (x *attribution) explained() bool {
	total := 0.0
	for i := range x.g.Residents {
		r := &x.g.Residents[i]
		total += r.Load.SMACT * r.Speed
		if m := x.measured[i]; !math.IsNaN(m) && math.Abs(m-math.Log(r.Speed)) > x.sd[i] {
			return false
		}
	}
	if x.g.Coarse {
		return min(total, 1) <= x.g.SMACT+ScoreError
	}
	return math.Abs(min(total, 1)-x.g.SMACT) <= ScoreError
}

// observed stores the measured activity of a task on a GPU. Once all its GPUs are
// measured, this replaces the task's expected load, unless the samples were coarse. It
// returns the task if its load was not known before.
func (pr *Predictor) observed(g *model.GPU, r *model.Resident, load interference.Load, doubt float64) (known []*model.Task) {
	r.Load, r.Doubt, r.Unseen, r.Bound = load, doubt, false, g.Coarse
	t := pr.TaskByID(r.Task)
	var all []interference.Load
	worst := 0.0
	for _, grant := range t.Current().Grants {
		own := pr.GPU(grant.GPU).Resident(t.ID)
		if own.Unseen || own.Bound {
			all = nil
			break
		}
		all, worst = append(all, own.Load), max(worst, own.Doubt)
	}
	if all != nil {
		first := len(t.Expected.Loads) == 0
		t.Expected.Loads, t.Doubt, t.Expected.Source = all, worst, model.SourceSeen
		if first {
			pr.countClass(t, all[0])
			known = append(known, t)
		}
	}
	pr.UpdateSpeeds([]*model.GPU{g})
	pr.MarkDirty()
	return known
}
