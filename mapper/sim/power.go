package sim

import "math"

// Activity is what DCGM's profiling counters show of a GPU, 0 to 1.
type Activity struct{ SMACT, SMOCC, DRAMA float64 }

// Plus adds two activities.
func (a Activity) Plus(b Activity) Activity {
	return Activity{a.SMACT + b.SMACT, a.SMOCC + b.SMOCC, a.DRAMA + b.DRAMA}
}

// Times scales an activity.
func (a Activity) Times(f float64) Activity {
	return Activity{a.SMACT * f, a.SMOCC * f, a.DRAMA * f}
}

// Combine is the activity of collocated tasks: each contributes what it does
// alone times the rate it goes at, and nothing is more than fully busy.
func Combine(loads []Load, speeds []float64) Activity {
	var sum Activity
	for i, l := range loads {
		sum = sum.Plus(Activity{l.SMACT, l.SMOCC, l.DRAMA}.Times(speeds[i]))
	}
	return Activity{min(1, sum.SMACT), min(1, sum.SMOCC), min(1, sum.DRAMA)}
}

// Coefficients of watts, fitted to the 14 pairs of mean activity and mean
// power in AEGIS's result tables (A100 40 GB, three traces, four to six
// policies): root mean square error 3.7 W over 213 to 267 W. Activity there is
// mostly below 0.7, and the share of SM activity is poorly told apart from
// that of DRAM activity: a task that computes much and moves little data
// probably draws more than this says.
const (
	wattsSMACT = 0.30
	wattsDRAMA = 1.97
)

// Watts is the draw of a GPU at an activity: idle power plus a share of the
// rest that saturates.
func Watts(idle, peak float64, a Activity) float64 {
	return idle + (peak-idle)*(1-math.Exp(-wattsSMACT*a.SMACT-wattsDRAMA*a.DRAMA))
}
