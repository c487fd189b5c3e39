package sim

import (
	"math"
	"slices"
	"time"

	"carma/internal/units"

	"carma/mapper"
	"carma/mapper/energy"
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
	truth   Truth
	uses    []*use // in order of arrival

	held     units.Bytes
	activity Activity // now
	shown    Activity // now, as the monitor reads it
	coarse   bool     // it reads the share of time in which a kernel runs
	watts    float64  // now

	// Integrals up to at, over seconds.
	at     units.Instant
	sum    Activity
	seen   Activity // of shown
	memory float64  // bytes
	energy float64  // joules

	bends   []bend        // of seen, as far back as the monitor's window
	out, in units.Instant // until when memory is copied in that direction
	warm    bool          // what the monitor reports may still change
	touched bool          // memory has changed since the last report
	scores  Activity
	tasks   []mapper.TaskUse
	curves  *GPUTimeline  // nil: not recorded
	charged units.Instant // until when the tasks have been charged with its energy
	score   Score

	busy     []*use // scratch, as are the next
	readings []readings
	values   []value
	active   []float64
	shares   []float64
}

// bend is where the integral of what the monitor reads changes its slope.
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
	// activity is the SM activity that it causes, watts its share of the GPU's
	// draw, energy what it has had of it, in joules.
	activity, watts, energy float64
	speed                   float64 // that the model says, while it is busy
}

func newDevice(g GPU, start units.Instant) *device {
	d := &device{GPU: g, at: start, charged: start, bends: []bend{{at: start}}}
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
	d.seen = d.seen.Plus(d.shown.Times(s))
	d.memory += float64(d.held) * s
	d.energy += d.watts * s
	d.at = now
}

// settle recomputes rates, activity and power after a change of who is busy.
func (d *device) settle(now units.Instant, scratch []Load) []Load {
	loads := scratch[:0]
	d.busy = d.busy[:0]
	for _, u := range d.uses {
		u.rate = d.Speed // loading data and the like: nobody is in the way
		if u.busy() {
			loads, d.busy = append(loads, u.load), append(d.busy, u)
		}
	}
	speeds := d.sharing.speeds(d.model, loads)
	d.truth.slowed(d.busy, speeds)
	d.charge(now)
	a := Combine(loads, speeds)
	shown := a
	if d.coarse {
		shown = coarse(loads, speeds, a)
	}
	if a != d.activity || shown != d.shown {
		d.advance(now)
		d.activity, d.shown = a, shown
		d.watts = Watts(d.IdlePower, d.PeakPower, a)
		d.bends = append(d.bends, bend{now, d.seen, shown})
		d.record(now)
	}
	for _, u := range d.uses {
		u.activity = 0
		if u.busy() {
			u.rate *= speeds[0]
			u.activity, u.speed = u.load.SMACT*speeds[0], speeds[0]
			speeds = speeds[1:]
		}
	}
	d.share()
	return loads
}

// charge brings the energy of the tasks up to now. It comes before every change of
// what they draw.
func (d *device) charge(now units.Instant) {
	s := seconds(now - d.charged)
	for _, u := range d.uses {
		u.energy += u.watts * s
	}
	d.charged = now
}

// share gives each task its share of the draw.
func (d *device) share() {
	d.active = d.active[:0]
	for _, u := range d.uses {
		d.active = append(d.active, u.activity)
	}
	d.shares = energy.Shares(d.shares[:0], d.watts, d.IdlePower, d.active)
	for i, u := range d.uses {
		u.watts = d.shares[i]
	}
}

// join puts a task on the device that does not keep it busy yet.
func (d *device) join(u *use, now units.Instant) {
	d.charge(now)
	d.uses = append(d.uses, u)
	u.rate = d.Speed
	d.share()
}

func (u *use) busy() bool {
	return u.run.training && !u.run.halted && !u.run.resting && u.load.SMACT > 0
}

// free gives memory back.
func (u *use) free(now units.Instant, n units.Bytes) {
	d := u.device
	d.advance(now)
	d.held -= n
	u.held -= n
	d.touched = true
	d.record(now)
}

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
	d.charge(now)
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
	scores, first := d.shown, d.bends[0]
	switch {
	case len(d.bends) == 1:
	case d.score == ScoreRisk:
		scores = d.risk(now)
	default:
		before := first.sum.Plus(first.activity.Times(seconds(max(0, from-first.at))))
		scores = d.seen.Plus(before.Times(-1)).Times(1 / seconds(window))
	}
	scores = Activity{percent(scores.SMACT), percent(scores.SMOCC), percent(scores.DRAMA)}
	differs = d.touched || scores != d.scores
	d.scores = scores
	if d.truth.Processes > 0 {
		d.touched, differs = true, differs || d.timesDiffer()
	}
	if d.touched {
		d.tasks = d.tasks[:0]
		for _, u := range d.uses {
			if u.held > 0 {
				d.tasks = append(d.tasks, u.shows(d.truth))
			}
		}
	}
	d.touched = false
	d.warm = len(d.bends) > 1
	return differs
}

// shows is what a sample tells of a task.
func (u *use) shows(t Truth) mapper.TaskUse {
	out := mapper.TaskUse{Task: u.run.id, Used: u.held}
	if t.Processes == 0 || t.uniform(drawProcesses, u.run.id) >= t.Processes {
		return out
	}
	out.Timed = true
	if u.busy() {
		off := processError * math.Sqrt2 * math.Erfinv(2*t.uniform(drawBusy, u.run.task.Name)-1)
		gap := (1 - max(u.load.SMACT, min(1, u.load.Busy()+off))) * u.speed
		out.Active = percent(1 - gap)
	}
	return out
}

// timesDiffer reports whether samples tell other times of the tasks than before.
func (d *device) timesDiffer() bool {
	i := 0
	for _, u := range d.uses {
		if u.held == 0 {
			continue
		}
		if i >= len(d.tasks) || d.tasks[i] != u.shows(d.truth) {
			return true
		}
		i++
	}
	return i != len(d.tasks)
}

// sample is what look has found.
func (d *device) sample() mapper.GPUSample {
	return mapper.GPUSample{
		ID: d.ID, Used: d.held, SMACT: d.scores.SMACT, SMOCC: d.scores.SMOCC, DRAMA: d.scores.DRAMA, Coarse: d.coarse, Tasks: d.tasks,
	}
}

// coarse is what NVML's utilization shows of a GPU: the share of time in which
// any kernel runs. Kernels of several tasks run independently of each other.
func coarse(loads []Load, speeds []float64, real Activity) Activity {
	gap := 1.0
	for i, l := range loads {
		gap *= l.Gap(speeds[i])
	}
	return Activity{SMACT: 1 - gap, SMOCC: 1 - gap, DRAMA: real.DRAMA}
}

// percent rounds to hundredths, as the monitor does.
func percent(v float64) float64 { return math.Round(min(1, max(0, v))*100) / 100 }
