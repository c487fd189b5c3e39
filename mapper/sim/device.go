package sim

import (
	"math"
	"slices"
	"time"

	"carma/internal/units"
	"carma/mapper/energy"
	"carma/mapper/model"
)

// The daemon's monitor reads the GPUs every second and reports the mean of the readings
// of the last 30 s, including the reading of 30 s ago. A reading is the mean over the
// second before it, so the reported mean is over 31 s. [ScoreRisk] is another score.
const window = units.Instant(31 * time.Second)

// device is a GPU and its tasks.
type device struct {
	GPU
	sharing Sharing
	model   Model
	truth   Truth
	uses    []*use // in order of arrival

	held     units.Bytes
	activity Activity // at present
	shown    Activity // at present, as the monitor reads it
	coarse   bool     // the monitor reads the share of time in which a kernel runs
	watts    float64  // at present

	// Integrals up to at, over seconds.
	at     units.Instant
	sum    Activity
	seen   Activity // of shown
	memory float64  // bytes
	energy float64  // joules

	bends   []bend        // of seen, back to the beginning of the monitor's window
	out, in units.Instant // the ends of the copies in each direction
	warm    bool          // the monitor's report may still change
	touched bool          // memory has changed since the last report
	scores  Activity
	tasks   []model.TaskUse
	curves  *GPUTimeline  // nil if not recorded
	charged units.Instant // the instant up to which its energy is charged to tasks
	score   Score

	busy     []*use // scratch, as are the next
	readings []readings
	values   []value
	active   []float64
	shares   []float64
}

// bend is a point where the integral of the monitor's readings changes its slope.
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
	rate       float64 // progress, relative to running alone on an A100
	// activity is the SM activity caused by the task, watts its share of the GPU's power,
	// energy its share of the energy so far, in joules.
	activity, watts, energy float64
	speed                   float64 // speed in the model, while it is busy
}

func newDevice(g GPU, start units.Instant) *device {
	d := &device{GPU: g, at: start, charged: start, bends: []bend{{at: start}}}
	d.watts = Watts(g.IdlePower, g.PeakPower, Activity{})
	return d
}

func seconds(d units.Instant) float64 { return float64(d) / float64(time.Second) }

// advance updates the integrals up to now. It precedes every change.
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

// settle recomputes rates, activity and power after a change of the busy tasks.
func (d *device) settle(now units.Instant, scratch []Load) []Load {
	loads := scratch[:0]
	d.busy = d.busy[:0]
	for _, u := range d.uses {
		u.rate = d.Speed // while the task loads data and the like, other tasks do not slow it down
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

// charge updates the energy of the tasks up to now. It precedes every change of their
// power.
func (d *device) charge(now units.Instant) {
	s := seconds(now - d.charged)
	for _, u := range d.uses {
		u.energy += u.watts * s
	}
	d.charged = now
}

// share divides the power among the tasks.
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

// join adds a task to the device that does not keep it busy yet.
func (d *device) join(u *use, now units.Instant) {
	d.charge(now)
	d.uses = append(d.uses, u)
	u.rate = d.Speed
	d.share()
}

func (u *use) busy() bool {
	return u.run.training && !u.run.halted && !u.run.resting && u.load.SMACT > 0
}

// free returns memory.
func (u *use) free(now units.Instant, n units.Bytes) {
	d := u.device
	d.advance(now)
	d.held -= n
	u.held -= n
	d.touched = true
	d.record(now)
}

// alloc allocates memory if there is room for all of it.
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

// leave frees all memory and removes the use from its device.
func (u *use) leave(now units.Instant) {
	d := u.device
	d.advance(now)
	d.charge(now)
	d.held -= u.held
	d.uses = slices.DeleteFunc(d.uses, func(o *use) bool { return o == u })
	d.touched = true
	d.record(now)
}

// look computes the monitor's report at a tick, and reports whether it differs from the
// last one.
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

// shows returns the sample of a task.
func (u *use) shows(t Truth) model.TaskUse {
	out := model.TaskUse{Task: u.run.id, Used: u.held}
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

// timesDiffer reports whether the samples of the tasks differ from the last ones.
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

// sample returns the report that look has computed.
func (d *device) sample() model.GPUSample {
	return model.GPUSample{
		ID: d.ID, Used: d.held, SMACT: d.scores.SMACT, SMOCC: d.scores.SMOCC, DRAMA: d.scores.DRAMA, Coarse: d.coarse, Tasks: d.tasks,
	}
}

// coarse returns NVML's utilization of a GPU: the share of time in which any kernel runs.
// The kernels of different tasks run independently of each other.
func coarse(loads []Load, speeds []float64, real Activity) Activity {
	gap := 1.0
	for i, l := range loads {
		gap *= l.Gap(speeds[i])
	}
	return Activity{SMACT: 1 - gap, SMOCC: 1 - gap, DRAMA: real.DRAMA}
}

// percent rounds to hundredths, as the monitor does.
func percent(v float64) float64 { return math.Round(min(1, max(0, v))*100) / 100 }
