package runner

import (
	"carma/mapper/model"
	"carma/runner/journal"
	"carma/runner/record"
)

// hooks does the work of the daemon around the scheduler, see [loop.Hooks].
type hooks struct {
	*Runner
	ended <-chan struct{} // once the last task of a draining daemon has ended
}

// BeginBatch implements [loop.Hooks].
func (h *hooks) BeginBatch() { h.admission.BeginBatch() }

// Archive implements [loop.Hooks].
func (h *hooks) Archive(removed []model.TaskID) []journal.MetaRow {
	return h.past.Add(removed)
}

// CarryOut implements [loop.Hooks].
func (h *hooks) CarryOut(ev model.Event, decisions []model.Decision) {
	h.applied(ev)
	h.reportSuspension(ev)
	h.carryOut(decisions)
	h.messenger.Wake(h.loop.Seq(), ev, decisions)
	h.counter.Count(ev, decisions)
}

// EndBatch implements [loop.Hooks].
func (h *hooks) EndBatch(changed []*record.Record) {
	for _, rec := range changed {
		h.prober.StartIfDue(rec)
	}
	h.trouble.Set(h.findProblems())
	h.canary.StartIfDue(h.work, &h.side)
}

// Ended implements [loop.Hooks]: the loop of a draining daemon ends some seconds after the
// last task.
func (h *hooks) Ended() <-chan struct{} {
	if h.ended == nil && h.drained() {
		h.ended = waitAtMost(&h.running, drainTail)
	}
	return h.ended
}
