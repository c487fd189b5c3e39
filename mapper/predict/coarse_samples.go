package predict

import (
	"math"

	"carma/mapper/interference"
	"carma/mapper/model"
)

// Coarse samples show the share of time in which any kernel ran, not how busy the SMs were.
// That share is an upper bound of the SM activity, because a task with small kernels may show
// 0.9 and leave most of the GPU to others. So carma does not treat coarse samples as
// measurements. Their results are not stored in the history. They apply only while the task is
// placed, and with a large standard deviation.
const (
	// coarseError is the standard deviation of the share of time in which a kernel runs,
	// as interference.Load.Busy predicts it: in published data its error is 0.06 on
	// average, and 0.15 at most.
	coarseError = 0.1
	// lowerMost limits the penalty for an activity that is lower than usual for such a share of
	// time.
	lowerMost = 2
	// mixDoubt is the standard deviation of the SM activity of unknown tasks.
	mixDoubt = 0.3
	// The other activities of a task, as shares of its SM activity, from the typical
	// loads.
	typicalSMOCC = 0.5
	typicalDRAMA = 0.43
)

// SetCoarse handles a change between coarse and fine samples of a GPU. The samples count once
// their window contains only samples of the new kind.
func (pr *Predictor) SetCoarse(g *model.GPU, coarse bool) {
	if g.Coarse == coarse {
		return
	}
	g.Coarse, g.ReadSince = coarse, pr.Now()
	for i := range g.Residents {
		if g.Residents[i].Bound {
			g.SeenAt = 0 // fine samples show its load better
		}
	}
}

// likely returns the SM activity of an unknown task, estimated from similar tasks. ok is false
// if its load is known.
func (pr *Predictor) likely(t *model.Task) (smact float64, ok bool) {
	m := pr.Prior(t)
	for c, weight := range m {
		smact += weight * TypicalLoads[c].SMACT
	}
	return smact, m.IsUnknown()
}

// typicalOf completes an SM activity with the typical other activities, within the bounds
// of coarse samples.
func typicalOf(bound interference.Load) interference.Load {
	bound.SMOCC = min(bound.SMOCC, typicalSMOCC*bound.SMACT)
	bound.DRAMA = min(bound.DRAMA, typicalDRAMA*bound.SMACT)
	return bound
}

// coarsely returns the deviation of a coarse sample from the loads on a GPU, whose sum of SM
// activity is total. A total above the sample is very unlikely. A lower total is always
// possible; its probability depends on the share of time in which such tasks keep a GPU busy
// and on their usual load. If an activity was declared, a lower total is not penalized.
func (x *attribution) coarsely(total float64, sought interference.Load, speeds []float64) float64 {
	over := math.Max(0, math.Min(total, 1)-x.g.SMACT) / ScoreError
	off := over * over
	if x.declared {
		return off
	}
	gap := 1.0
	for i := range x.strangers {
		l := x.g.Residents[i].Load
		if x.strangers[i] {
			l = sought
		}
		gap *= l.Gap(speeds[i])
	}
	share := (1 - gap - x.g.SMACT) / coarseError
	if square := share * share; share < 0 { // its kernels are small
		off += math.Min(square, lowerMost)
	} else {
		off += square
	}
	if x.prior > 0 {
		p := (sought.SMACT - x.prior) / mixDoubt
		off += p * p
	}
	return off
}

// measures reports whether the speed of any other task on the GPU is measured.
func (x *attribution) measures() bool {
	for _, m := range x.measured {
		if !math.IsNaN(m) {
			return true
		}
	}
	return false
}

// timed returns the deviation of the loads on a GPU from the share of time in which the kernels
// of each task run, if the samples contain this share and no output is more exact. On a GPU
// with coarse samples, this share is an upper bound for each task. On other GPUs the sum of the
// tasks' activities is known, and these shares divide the sum among the tasks, with the error
// of interference.Load.Busy.
func (x *attribution) timed(sought interference.Load, speeds []float64) (off float64) {
	for i := range x.strangers {
		if x.strangers[i] && x.p.TaskByID(x.g.Residents[i].Task).Pace.Rate > 0 {
			return 0 // its own output, and its effect on others, are more exact
		}
	}
	for i := range x.strangers {
		r := &x.g.Residents[i]
		if !r.Timed || !math.IsNaN(x.measured[i]) {
			continue
		}
		l := r.Load
		if x.strangers[i] {
			l = sought
		}
		miss := (1 - l.Gap(speeds[i]) - r.Active) / coarseError
		if x.g.Coarse {
			miss = math.Max(0, l.SMACT*speeds[i]-r.Active) / ScoreError
		}
		off += miss * miss
	}
	return off
}
