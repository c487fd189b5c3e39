package measure

import (
	"strconv"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/inventory"
	"carma/runner/metrics"
	"carma/runner/record"
)

// Counter counts the effects of events, for the page of metrics. Only the loop uses it.
type Counter struct {
	tally   *metrics.Tally
	records *record.Store
	gpus    *inventory.GPUs
	faulty  map[model.GPUID]bool // faults in the last sample, or nil if none
}

// NewCounter returns a counter that counts on tally.
func NewCounter(tally *metrics.Tally, records *record.Store, gpus *inventory.GPUs) *Counter {
	return &Counter{tally: tally, records: records, gpus: gpus}
}

// Count counts the effects of an event and its decisions, for the page of metrics. It is
// called once for each event, after the decisions have become durable, and never blocks.
func (c *Counter) Count(ev model.Event, decisions []model.Decision) {
	at := model.EventTime(ev)
	switch ev := ev.(type) {
	case model.Exited:
		switch ev.Class {
		case model.ExitGPUOOM, model.ExitSuspectedOOM:
			c.tally.OOM("gpu")
		case model.ExitHostOOM:
			c.tally.OOM("host")
		}
	case model.Sampled:
		c.countFaults(ev)
	}
	for _, d := range decisions {
		switch d := d.(type) {
		case model.Launch:
			if rec, _ := c.records.Get(d.Task); rec != nil && d.Attempt == 1 {
				c.tally.Waited(at.Sub(rec.Task.Submitted))
			}
		case model.Requeue:
			c.tally.Relaunched(string(d.Reason.Code))
		case model.Suspend:
			c.tally.Suspended(string(d.Reason.Code))
		case model.Finish:
			c.tally.Finished(string(d.Task.Phase))
			c.countEstimate(&d.Task)
		}
	}
}

// countEstimate compares the estimate of a task that succeeded with its highest use.
func (c *Counter) countEstimate(t *model.Task) {
	if t.Phase != model.Succeeded || t.Estimate.WholeGPU || t.NoGPU {
		return
	}
	peak := units.Bytes(0)
	for i := range t.Attempts {
		if a := &t.Attempts[i]; a.Class == model.ExitOK && !a.Filled {
			peak = max(peak, a.Peak)
		}
	}
	c.tally.Estimated(string(t.Estimate.Method), int64(peak), int64(t.Estimate.Memory))
}

// countFaults counts the faults that began with a sample. Faults that a daemon finds at
// its start are not new.
func (c *Counter) countFaults(ev model.Sampled) {
	if c.faulty == nil {
		c.faulty = map[model.GPUID]bool{}
		for _, g := range ev.GPUs {
			c.faulty[g.ID] = g.Fault != ""
			c.tally.Watch(strconv.Itoa(c.gpus.Infos()[g.ID].Index), string(g.ID))
		}
		return
	}
	for _, g := range ev.GPUs {
		if g.Fault != "" && !c.faulty[g.ID] {
			c.tally.Fault(strconv.Itoa(c.gpus.Infos()[g.ID].Index), string(g.ID))
		}
		c.faulty[g.ID] = g.Fault != ""
	}
}
