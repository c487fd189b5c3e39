package simgpu

import (
	"math"
	"time"

	"carma/mapper/sim"
	"carma/runner/gpu"
)

// activity is what DCGM's profiling counters show of a device, 0 to 1.
type activity struct{ smact, smocc, drama float64 }

func (a activity) plus(b activity) activity {
	return activity{a.smact + b.smact, a.smocc + b.smocc, a.drama + b.drama}
}

func (a activity) times(f float64) activity {
	return activity{a.smact * f, a.smocc * f, a.drama * f}
}

// combine is the activity of collocated tasks: each contributes what it does
// alone times the rate it goes at, and nothing is more than fully busy.
func combine(loads []sim.Load, speeds []float64) activity {
	var sum activity
	for i, l := range loads {
		sum = sum.plus(activity{l.SMACT, l.SMOCC, l.DRAMA}.times(speeds[i]))
	}
	return activity{min(1, sum.smact), min(1, sum.smocc), min(1, sum.drama)}
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

// watts is the draw at an activity: idle power plus a share of the rest that
// saturates.
func (d *device) watts(a activity) float64 {
	return d.IdlePower + (d.PeakPower-d.IdlePower)*(1-math.Exp(-wattsSMACT*a.smact-wattsDRAMA*a.drama))
}

// sample reads a device at the time of the last advance. Activity is the mean
// since the sample before.
func (d *device) sample(now time.Time) gpu.Sample {
	mean := d.activity
	if seconds := now.Sub(d.sampled).Seconds(); seconds > 0 {
		mean = d.sum.plus(d.sampleSum.times(-1)).times(1 / seconds)
	}
	d.sampled, d.sampleSum = now, d.sum
	s := gpu.Sample{
		UUID: d.UUID,
		// After a restart clients may declare more than there is: a device
		// never shows that.
		Used:  min(d.used(), d.Memory),
		SMACT: bound(mean.smact), SMOCC: bound(mean.smocc), DRAMA: bound(mean.drama),
		PowerW: d.power, EnergyJ: d.energy,
	}
	for _, u := range d.uses {
		if u.held > 0 {
			s.Processes = append(s.Processes, gpu.Process{
				PID: u.process.pid, Task: u.process.task, Attempt: u.process.attempt, Used: u.held, Peak: u.peak,
			})
		}
	}
	return s
}

// bound takes rounding errors out of a mean.
func bound(f float64) float64 { return max(0, min(1, f)) }
