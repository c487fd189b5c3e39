package mapper

import (
	"math"

	"carma/internal/units"
	"carma/mapper/interference"
)

// Coarse samples show the share of time in which any kernel ran, not how busy
// the SMs were. That is an upper bound of the SM activity: a task of small
// kernels may show 0.9 and leave most of the GPU to others. So what coarse
// samples show is never learned as a fact. It is in no history, and holds for
// the placement only, with a large doubt.
const (
	// coarseDoubt is the least standard deviation of an SM activity that was
	// found in coarse samples, unless measured speeds tell more.
	coarseDoubt = 0.2
	// coarseError is the standard deviation of the share of time in which a
	// kernel runs, as interference.Load.Busy has it: where it was published it is
	// 0.06 off on average, and 0.15 at most.
	coarseError = 0.1
	// lowerMost is the most that speaks against an activity for being lower than
	// usual for such a share of time.
	lowerMost = 2
	// mixDoubt is the standard deviation of the SM activity of tasks of which
	// nothing is known.
	mixDoubt = 0.3
	// The other activities of a task, as shares of its SM activity: those of the
	// typical loads.
	typicalSMOCC = 0.5
	typicalDRAMA = 0.43
)

// readAnew follows a change of how a GPU's activity is read. The samples count
// when they show only the new way.
func (s *State) readAnew(g *GPU, coarse bool) {
	if g.Coarse == coarse {
		return
	}
	g.Coarse, g.ReadSince = coarse, s.now
	for i := range g.Residents {
		if g.Residents[i].Bound {
			g.SeenAt = 0 // fine samples tell more of it
		}
	}
}

// countsFrom is the instant from which samples show only the tasks that are on a
// GPU now, all read in the same way.
func (g *GPU) countsFrom() units.Instant { return max(g.ChangedAt, g.ReadSince).Add(settling) }

// shown is the activity that samples are expected to show of the residents of a
// GPU, without one of them.
func (g *GPU) shown(without int) float64 {
	sum, gap := 0.0, 1.0
	for i := range g.Residents {
		if r := &g.Residents[i]; i != without {
			sum += r.Load.SMACT * r.Speed
			gap *= r.Load.Gap(r.Speed)
		}
	}
	if g.Coarse {
		return 1 - gap
	}
	return min(sum, 1)
}

// vague reports whether the activity of the task that came last may be found
// better once speeds are measured.
func (g *GPU) vague() bool {
	n := len(g.Residents)
	return g.Coarse && n > 1 && g.Residents[n-1].Bound && g.Residents[n-1].Doubt >= coarseDoubt
}

// likely is the SM activity of a task of which nothing is known, as far as
// similar tasks tell; ok is false if something is known of it.
func (s *State) likely(t *Task) (smact float64, ok bool) {
	m := s.priorOf(t)
	for c, weight := range m {
		smact += weight * typicalLoads[c].SMACT
	}
	return smact, m.unknown()
}

// typicalOf completes an SM activity with what is typical beside it, within the
// bounds that coarse samples give.
func typicalOf(bound interference.Load) interference.Load {
	bound.SMOCC = min(bound.SMOCC, typicalSMOCC*bound.SMACT)
	bound.DRAMA = min(bound.DRAMA, typicalDRAMA*bound.SMACT)
	return bound
}

// coarsely is how badly the loads of a mixture explain a coarse sample. total is
// the SM activity they come to. More than the sample is hardly possible. Less
// always is; how likely it is, the time that tasks keep a GPU busy tells, and
// what such tasks do. If an activity was told, less is as good.
func (x *attribution) coarsely(total float64, sought interference.Load, speeds []float64) float64 {
	over := math.Max(0, math.Min(total, 1)-x.g.SMACT) / scoreError
	off := over * over
	if x.told {
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

// measures reports whether somebody beside the strangers says how fast it goes.
func (x *attribution) measures() bool {
	for _, m := range x.measured {
		if !math.IsNaN(m) {
			return true
		}
	}
	return false
}

// timed is how badly the loads of a mixture explain the share of time in which the
// kernels of each task run, where samples tell that and no output tells more. On a
// coarse GPU it is a bound for each task, as the sample is for all. Elsewhere the sum
// of the tasks' activities is known, and these shares tell whose it is, with the error
// that interference.Load.Busy has.
func (x *attribution) timed(sought interference.Load, speeds []float64) (off float64) {
	for i := range x.strangers {
		if x.strangers[i] && x.s.tasks[x.g.Residents[i].Task].Pace.Rate > 0 {
			return 0 // its own output, and what it does to others, tell more
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
			miss = math.Max(0, l.SMACT*speeds[i]-r.Active) / scoreError
		}
		off += miss * miss
	}
	return off
}
