package lifecycle

import "carma/mapper/model"

// ResumeRequested lets a suspended task resume when there is room.
func (lc *Lifecycle) ResumeRequested(ev model.ResumeAsked) {
	if t := lc.TaskByID(ev.Task); t != nil {
		lc.allowResume(t)
	}
}

// allowResume lets a suspended task resume when there is room.
func (lc *Lifecycle) allowResume(t *model.Task) {
	if t.Suspension == nil || t.Suspension.Automatic || t.StopReason.Code != "" {
		return
	}
	t.Suspension.Automatic = true
	if t.Waiting() {
		lc.Enqueue(t, model.Suspended)
	}
}

// TerminalInput ends the idleness of a task into whose terminal a user has typed. A task
// suspended for idleness may resume.
func (lc *Lifecycle) TerminalInput(ev model.TerminalInput) {
	t := lc.TaskByID(ev.Task)
	if t == nil || t.Alive() == nil {
		return
	}
	if t.Current() != nil {
		t.Idle.Touched = max(lc.Now(), 1)
		lc.preempter.UpdateIdle(t)
	}
	if t.Suspension != nil && t.Suspension.Reason.Code == model.ReasonIdle {
		lc.allowResume(t) // a user is back
	}
}
