package simgpu

import (
	"time"

	"carma/mapper/sim"
	"carma/runner/gpu"
)

// watts is the draw at an activity.
func (d *device) watts(a sim.Activity) float64 { return sim.Watts(d.IdlePower, d.PeakPower, a) }

// sample reads a device at the time of the last advance. Activity is the mean
// since the sample before.
func (d *device) sample(now time.Time) gpu.Sample {
	mean := d.activity
	if seconds := now.Sub(d.sampled).Seconds(); seconds > 0 {
		mean = d.sum.Plus(d.sampleSum.Times(-1)).Times(1 / seconds)
	}
	d.sampled, d.sampleSum = now, d.sum
	s := gpu.Sample{
		UUID: d.UUID,
		// After a restart clients may declare more than there is: a device
		// never shows that.
		Used:  min(d.used(), d.Memory),
		SMACT: bound(mean.SMACT), SMOCC: bound(mean.SMOCC), DRAMA: bound(mean.DRAMA),
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
