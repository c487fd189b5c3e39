package sim

import "math"

// Activity is the activity of a GPU in DCGM's profiling counters, 0 to 1.
type Activity struct{ SMACT, SMOCC, DRAMA float64 }

// Plus adds two activities.
func (a Activity) Plus(b Activity) Activity {
	return Activity{a.SMACT + b.SMACT, a.SMOCC + b.SMOCC, a.DRAMA + b.DRAMA}
}

// Times scales an activity.
func (a Activity) Times(f float64) Activity {
	return Activity{a.SMACT * f, a.SMOCC * f, a.DRAMA * f}
}

// Combine returns the activity of collocated tasks: each contributes its activity alone
// times its speed, and the sum is at most fully busy.
func Combine(loads []Load, speeds []float64) Activity {
	var sum Activity
	for i, l := range loads {
		sum = sum.Plus(Activity{l.SMACT, l.SMOCC, l.DRAMA}.Times(speeds[i]))
	}
	return Activity{min(1, sum.SMACT), min(1, sum.SMOCC), min(1, sum.DRAMA)}
}

// Coefficients of watts, fitted to the 14 pairs of mean activity and mean power in
// AEGIS's result tables (A100 40 GB, three traces, four to six policies): root mean
// square error 3.7 W over 213 to 267 W. Activity there is mostly below 0.7, and the
// effects of SM activity and DRAM activity are poorly separated: a task with much
// computation and little data movement probably draws more power than predicted.
const (
	wattsSMACT = 0.30
	wattsDRAMA = 1.97
)

// Watts returns the power of a GPU at an activity: idle power plus a saturating share of
// the rest.
func Watts(idle, peak float64, a Activity) float64 {
	return idle + (peak-idle)*(1-math.Exp(-wattsSMACT*a.SMACT-wattsDRAMA*a.DRAMA))
}
