package simgpu

import (
	"time"

	"carma/mapper/sim"
	"carma/runner/gpu"
)

// watts returns the power at an activity.
func (d *device) watts(a sim.Activity) float64 { return sim.Watts(d.IdlePower, d.PeakPower, a) }

// sample reads a device at the time of the last advance. Activity is the mean since the
// previous sample.
func (d *device) sample(now time.Time) gpu.Sample {
	mean, seconds := d.activity, now.Sub(d.sampled).Seconds()
	if seconds > 0 {
		mean = d.sum.Plus(d.sampleSum.Times(-1)).Times(1 / seconds)
	}
	d.sampled, d.sampleSum = now, d.sum
	s := gpu.Sample{
		UUID: d.UUID,
		// After a restart clients may declare more memory than there is. A device never reports
		// more than it has.
		Used:  min(d.used(), d.Memory),
		SMACT: bound(mean.SMACT), SMOCC: bound(mean.SMOCC), DRAMA: bound(mean.DRAMA),
		PowerW: d.power, EnergyJ: d.energy,
	}
	for _, u := range d.uses {
		if u.held > 0 {
			s.Processes = append(s.Processes, gpu.Process{
				PID: u.process.pid, Task: u.process.task, Attempt: u.process.attempt, Used: u.held, Peak: u.peak,
				Active: u.mean(seconds), Timed: true,
			})
		}
	}
	return s
}

// mean returns the share of time in which its kernels ran in the seconds since the
// previous sample, and starts the next mean.
func (u *use) mean(seconds float64) float64 {
	mean := u.active
	if seconds > 0 {
		mean = (u.sum - u.sampleSum) / seconds
	}
	u.sampleSum = u.sum
	return bound(mean)
}

// bound removes rounding errors from a mean.
func bound(f float64) float64 { return max(0, min(1, f)) }
