package sim

import (
	"math"
	"slices"
	"time"

	"carma/mapper/units"

	"carma/mapper"
)

// The daemon's monitor reads the GPUs every second and reports the mean of
// the readings of the last 30 s, that of 30 s ago included. A reading is the
// mean over the second before it, so what is reported is the mean over 31 s.
// [ScoreRisk] is another score.
const window = units.Instant(31 * time.Second)

// device is a GPU and what runs on it.
type device struct {
	GPU
	sharing Sharing
	model   Model
	uses    []*use // in order of arrival

	held     units.Bytes
	activity Activity // now
	watts    float64  // now

	// Integrals up to at, over seconds.
	at     units.Instant
	sum    Activity
	memory float64 // bytes
	energy float64 // joules

	bends   []bend // of the sum, as far back as the monitor's window
	warm    bool   // what the monitor reports may still change
	touched bool   // memory has changed since the last report
	scores  Activity
	tasks   []mapper.TaskUse
	curves  *GPUTimeline // nil: not recorded
	score   Score

	readings []readings // scratch
	values   []value
}

// bend is where the integral of a device's activity changes its slope.
type bend struct {
	at            units.Instant
	sum, activity Activity
}

// use is a run's share of one device.
type use struct {
	run        *run
	device     *device
	load       Load
	held, peak units.Bytes
	rate       float64 // progress relative to alone on an A100
}

func newDevice(g GPU, start units.Instant) *device {
	d := &device{GPU: g, at: start, bends: []bend{{at: start}}}
	d.watts = Watts(g.IdlePower, g.PeakPower, Activity{})
	return d
}

func seconds(d units.Instant) float64 { return float64(d) / float64(time.Second) }

// advance brings the integrals up to now. It comes before every change.
func (d *device) advance(now units.Instant) {
	if now == d.at {
		return
	}
	s := seconds(now - d.at)
	d.sum = d.sum.Plus(d.activity.Times(s))
	d.memory += float64(d.held) * s
	d.energy += d.watts * s
	d.at = now
}

// settle recomputes rates, activity and power after a change of who is busy.
func (d *device) settle(now units.Instant, scratch []Load) []Load {
	loads := scratch[:0]
	for _, u := range d.uses {
		u.rate = d.Speed // loading data and the like: nobody is in the way
		if u.busy() {
			loads = append(loads, u.load)
		}
	}
	speeds := d.sharing.speeds(d.model, loads)
	if a := Combine(loads, speeds); a != d.activity {
		d.advance(now)
		d.activity = a
		d.watts = Watts(d.IdlePower, d.PeakPower, a)
		d.bends = append(d.bends, bend{now, d.sum, a})
		d.record(now)
	}
	for _, u := range d.uses {
		if u.busy() {
			u.rate *= speeds[0]
			speeds = speeds[1:]
		}
	}
	return loads
}

func (u *use) busy() bool { return u.run.training && u.load.SMACT > 0 }

// alloc takes memory if there is room for all of it.
func (u *use) alloc(now units.Instant, n units.Bytes) bool {
	d := u.device
	if n > d.Memory-d.held {
		return false
	}
	d.advance(now)
	d.held += n
	u.held += n
	u.peak = max(u.peak, u.held)
	d.touched = true
	d.record(now)
	return true
}

// leave frees all and takes the use off its device.
func (u *use) leave(now units.Instant) {
	d := u.device
	d.advance(now)
	d.held -= u.held
	d.uses = slices.DeleteFunc(d.uses, func(o *use) bool { return o == u })
	d.touched = true
	d.record(now)
}

// look works out what the monitor reports at an instant of its clock, and
// whether that differs from what it reported last.
func (d *device) look(now units.Instant) (differs bool) {
	d.advance(now)
	from := now - d.score.window()
	for len(d.bends) > 1 && d.bends[1].at <= from {
		d.bends = d.bends[1:]
	}
	scores, first := d.activity, d.bends[0]
	switch {
	case len(d.bends) == 1:
	case d.score == ScoreRisk:
		scores = d.risk(now)
	default:
		before := first.sum.Plus(first.activity.Times(seconds(max(0, from-first.at))))
		scores = d.sum.Plus(before.Times(-1)).Times(1 / seconds(window))
	}
	scores = Activity{percent(scores.SMACT), percent(scores.SMOCC), percent(scores.DRAMA)}
	differs = d.touched || scores != d.scores
	d.scores = scores
	if d.touched {
		d.tasks = d.tasks[:0]
		for _, u := range d.uses {
			if u.held > 0 {
				d.tasks = append(d.tasks, mapper.TaskUse{Task: u.run.id, Used: u.held})
			}
		}
	}
	d.touched = false
	d.warm = len(d.bends) > 1
	return differs
}

// sample is what look has found.
func (d *device) sample() mapper.GPUSample {
	return mapper.GPUSample{
		ID: d.ID, Used: d.held, SMACT: d.scores.SMACT, SMOCC: d.scores.SMOCC, DRAMA: d.scores.DRAMA, Tasks: d.tasks,
	}
}

// percent rounds to hundredths, as the monitor does.
func percent(v float64) float64 { return math.Round(min(1, max(0, v))*100) / 100 }
