package mapper

import (
	"time"

	"carma/mapper/model"
)

// checkSlot rejects a slot that is longer than the server's.
func (s *State) checkSlot(slot time.Duration) *model.ImpossibleError {
	if s.Ledger.Options().Slot > 0 && slot > s.Ledger.Options().Slot {
		return &model.ImpossibleError{Option: "slot", Reason: model.Reason{Code: model.ReasonSlotTooLong, Span: slot, Most: s.Ledger.Options().Slot}}
	}
	return nil
}

// slotOver requeues a task after its attempt was stopped for others.
func (s *State) slotOver(t *model.Task, a *model.Attempt) {
	reason := t.StopReason
	a.NotAtFault = true
	t.SlotUsed, t.StopReason = false, model.Reason{}
	s.queue.PutLast(t)
	s.requeue(t, model.Queued, reason)
}
