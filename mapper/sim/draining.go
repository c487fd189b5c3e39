package sim

import (
	"fmt"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
)

// Drain is the maintenance of a GPU, for which the GPU is cordoned for a while. The zero
// value means none.
type Drain struct {
	GPU         int // its index, on the first machine
	From, Until time.Duration
	// Move moves its tasks to other GPUs, without ending them.
	Move bool
}

func (d Drain) on() bool { return d.Until > 0 }

func (d Drain) check(gpus []GPU) error {
	switch {
	case !d.on():
		return nil
	case d.From < 0 || d.Until <= d.From || d.Until > maxTime:
		return fmt.Errorf("drain: from %s until %s; the end is after the beginning", d.From, d.Until)
	}
	for _, g := range gpus {
		if g.Index == d.GPU {
			return nil
		}
	}
	return fmt.Errorf("drain: no GPU %d; there are %d, from 0", d.GPU, len(gpus))
}

// draining is the drain of a replay, with the time that the GPU's tasks took to leave.
type draining struct {
	entry
	device *device
	since  units.Instant // 0 before it begins and after the GPU is free
	took   time.Duration
}

// planDrain schedules the beginning of the drain.
func (e *engine) planDrain() {
	d := e.cfg.Drain
	if !d.on() {
		return
	}
	e.drain.rank = rankClose
	for _, g := range e.devices {
		if g.Index == d.GPU {
			e.drain.device = g
			break
		}
	}
	e.agenda.set(&e.drain.entry, origin.Add(d.From))
}

// closes cordons the GPU.
func (e *engine) closes() {
	d := e.cfg.Drain
	e.drain.since = e.now
	e.step(model.GPUsCordoned{At: e.now, GPUs: []model.GPUID{e.drain.device.ID}, Closure: &model.Cordon{
		Why: "maintenance", Until: origin.Add(d.Until), Move: d.Move,
	}})
}

// cleared records the end of the drain once the drained GPU has no task.
func (e *engine) cleared() {
	d := &e.drain
	if d.since == 0 {
		return
	}
	for _, g := range e.state.GPUs() {
		if g.ID == d.device.ID && len(g.Residents) == 0 {
			d.took, d.since = e.now.Sub(d.since), 0
		}
	}
}
