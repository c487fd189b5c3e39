package simgpu

import (
	"slices"
	"time"

	"carma/configs/servers"
	"carma/internal/units"
	"carma/mapper/model"
	"carma/mapper/sim"
	"carma/runner/gpu/simgpu/wire"
	"carma/runner/suspend"
)

// ledger is the state of the simulated GPUs: the clients, and the memory and the speed of
// each. It has no clock and no lock of its own.
type ledger struct {
	devices   []*device
	processes []*process // in order of arrival
	programs  map[int]*program
	speed     float64   // simulated seconds per wall second
	now       time.Time // simulated time of the last advance
}

type device struct {
	servers.GPU
	uses []*use // in order of arrival

	activity sim.Activity // at present
	power    float64      // present power in watts
	// Integrals over simulated time since the server began.
	sum    sim.Activity // x seconds
	energy float64      // joules
	// For means since the last sample.
	sampled   time.Time
	sampleSum sim.Activity
}

// process is one client on one or more GPUs: a connection.
type process struct {
	task    model.TaskID // 0 if foreign
	attempt int
	pid     int
	program *program // nil if its PID is unknown, so that it cannot be suspended
	uses    []*use
	pace    float64
	said    suspend.State // its state according to its hello
	// told and done are the numbers of the last State that it was sent, and that it
	// answered.
	told, done int64
	// tell sends a State. It must not block.
	tell func(wire.Reply)
	// paced is called at every change of speed. It must not block.
	paced func(pace, speed float64)
}

// use is a client's share of one device.
type use struct {
	process    *process
	name       string // UUID by which the client refers to it
	device     *device
	load       sim.Load
	held, peak units.Bytes
	rate       float64 // progress relative to running alone on an A100
	// active is the present share of time in which its kernels run, sum its integral in
	// seconds, sampleSum the integral at the last sample.
	active, sum, sampleSum float64
}

func newLedger(s servers.Server, now time.Time) *ledger {
	l := &ledger{speed: 1, now: now, programs: map[int]*program{}}
	for _, g := range s.GPUs {
		d := &device{GPU: g, sampled: now}
		d.power = d.watts(sim.Activity{})
		l.devices = append(l.devices, d)
	}
	return l
}

func (d *device) used() units.Bytes {
	var sum units.Bytes
	for _, u := range d.uses {
		sum += u.held
	}
	return sum
}

// advance updates the integrals up to now. It precedes every change.
func (l *ledger) advance(now time.Time) {
	seconds := now.Sub(l.now).Seconds()
	if seconds <= 0 {
		return
	}
	l.now = now
	for _, d := range l.devices {
		d.sum = d.sum.Plus(d.activity.Times(seconds))
		d.energy += d.power * seconds
		for _, u := range d.uses {
			u.sum += u.active * seconds
		}
	}
}

// join adds a client with its declared memory, whether or not there is room.
func (l *ledger) join(c *process) {
	l.processes = append(l.processes, c)
	c.pace = -1 // it gets its speed, even if that is 0
	for _, u := range c.uses {
		u.peak = u.held
	}
	l.enter(c)
	if !c.off() {
		c.attach()
	}
	l.settle()
}

// attach adds a client's memory and load to its GPUs.
func (c *process) attach() {
	for _, u := range c.uses {
		u.device.uses = append(u.device.uses, u)
	}
}

// detach removes a client's memory and load from its GPUs.
func (c *process) detach() {
	for _, u := range c.uses {
		u.device.uses = slices.DeleteFunc(u.device.uses, func(o *use) bool { return o == u })
	}
}

// leave removes a client with its memory and load.
func (l *ledger) leave(c *process) {
	l.processes = slices.DeleteFunc(l.processes, func(o *process) bool { return o == c })
	c.detach()
	if p := c.program; p != nil {
		p.clients = slices.DeleteFunc(p.clients, func(o *process) bool { return o == c })
		if len(p.clients) == 0 {
			delete(l.programs, p.pid)
		}
	}
	l.settle()
}

// alloc allocates memory if there is room for all of it.
func (l *ledger) alloc(u *use, n units.Bytes) bool {
	if n > u.device.Memory-u.device.used() {
		return false
	}
	u.held += n
	u.peak = max(u.peak, u.held)
	return true
}

// free frees memory, at most all that is held.
func (u *use) free(n units.Bytes) { u.held -= min(n, u.held) }

// on returns its use of the GPU with its own name for the GPU.
func (c *process) on(name string) *use {
	for _, u := range c.uses {
		if u.name == name {
			return u
		}
	}
	return nil
}

// settle recomputes rates, speeds, activity and power after a change.
func (l *ledger) settle() {
	for _, d := range l.devices {
		d.settle()
	}
	for _, c := range l.processes {
		pace := 0.0
		for i, u := range c.uses {
			if p := l.speed * u.rate; i == 0 || p < pace {
				pace = p
			}
		}
		if !c.runs() {
			pace = 0
		}
		if pace != c.pace {
			c.pace = pace
			c.paced(pace, l.speed)
		}
	}
}

// busy reports whether kernels run.
func (u *use) busy() bool { return u.load.SMACT > 0 && u.process.runs() }

func (d *device) settle() {
	var loads []sim.Load
	for _, u := range d.uses {
		u.rate, u.active = d.Speed, 0 // while it loads data and the like, neighbours do not slow it down
		if u.busy() {
			loads = append(loads, u.load)
		}
	}
	speeds := sim.Speeds(loads)
	d.activity = sim.Combine(loads, speeds)
	d.power = d.watts(d.activity)
	for _, u := range d.uses {
		if u.busy() {
			u.rate *= speeds[0]
			u.active = 1 - u.load.Gap(speeds[0])
			speeds = speeds[1:]
		}
	}
}
