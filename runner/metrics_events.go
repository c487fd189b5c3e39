package runner

import (
	"strconv"

	"carma/internal/units"
	"carma/mapper/model"
)

// observe counts the effects of an event and its decisions, for the page of metrics. It is
// called once for each event, after the decisions have become durable, and never blocks.
func (r *Runner) observe(ev model.Event, decisions []model.Decision) {
	r.messenger.Wake(r.loop.Seq(), ev, decisions)
	at := model.EventTime(ev)
	switch ev := ev.(type) {
	case model.Exited:
		switch ev.Class {
		case model.ExitGPUOOM, model.ExitSuspectedOOM:
			r.pages.OOM("gpu")
		case model.ExitHostOOM:
			r.pages.OOM("host")
		}
	case model.Sampled:
		r.observeFaults(ev)
	}
	for _, d := range decisions {
		switch d := d.(type) {
		case model.Launch:
			if rec, _ := r.records.Get(d.Task); rec != nil && d.Attempt == 1 {
				r.pages.Waited(at.Sub(rec.Task.Submitted))
			}
		case model.Requeue:
			r.pages.Relaunched(string(d.Reason.Code))
		case model.Suspend:
			r.pages.Suspended(string(d.Reason.Code))
		case model.Finish:
			r.pages.Finished(string(d.Task.Phase))
			r.observeEstimate(&d.Task)
		}
	}
}

// observeEstimate compares the estimate of a task that succeeded with its highest use.
func (r *Runner) observeEstimate(t *model.Task) {
	if t.Phase != model.Succeeded || t.Estimate.WholeGPU || t.NoGPU {
		return
	}
	peak := units.Bytes(0)
	for i := range t.Attempts {
		if a := &t.Attempts[i]; a.Class == model.ExitOK && !a.Filled {
			peak = max(peak, a.Peak)
		}
	}
	r.pages.Estimated(string(t.Estimate.Method), int64(peak), int64(t.Estimate.Memory))
}

// observeFaults counts the faults that began with a sample. Faults that a daemon finds at
// its start are not new.
func (r *Runner) observeFaults(ev model.Sampled) {
	if r.faulty == nil {
		r.faulty = map[model.GPUID]bool{}
		for _, g := range ev.GPUs {
			r.faulty[g.ID] = g.Fault != ""
			r.pages.Watch(strconv.Itoa(r.gpus.Infos()[g.ID].Index), string(g.ID))
		}
		return
	}
	for _, g := range ev.GPUs {
		if g.Fault != "" && !r.faulty[g.ID] {
			r.pages.Fault(strconv.Itoa(r.gpus.Infos()[g.ID].Index), string(g.ID))
		}
		r.faulty[g.ID] = g.Fault != ""
	}
}
