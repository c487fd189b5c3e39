package record

import (
	"strings"
	"time"

	"carma/containers"
	"carma/mapper/model"
)

// AttemptEnd holds the observations about the end of an attempt, for people. The journal
// keeps it in the task's record.
type AttemptEnd struct {
	// Remark is a note for people beside the outcome, or empty.
	Remark    string               `json:"remark,omitempty"`
	Witnesses []containers.Witness `json:"witnesses,omitempty"`
}

// WithoutQuotes returns the end without the lines of the output.
func (e *AttemptEnd) WithoutQuotes() *AttemptEnd {
	hidden := AttemptEnd{Remark: e.Remark}
	for _, w := range e.Witnesses {
		if w.Source == containers.SourceOutput {
			w.Text = ""
		}
		hidden.Witnesses = append(hidden.Witnesses, w)
	}
	return &hidden
}

// WithoutQuote returns a message about an exit without the line of the output that follows
// the exit code.
func WithoutQuote(message string) string {
	before, _, _ := strings.Cut(message, ": ")
	return before
}

// UnquotedReason returns a reason without quotes of a program's output.
func UnquotedReason(reason model.Reason) model.Reason {
	if reason.Code == model.ReasonProgram || reason.Code == model.ReasonText {
		reason.Text = WithoutQuote(reason.Text)
	}
	if reason.Cause != nil {
		cause := UnquotedReason(*reason.Cause)
		reason.Cause = &cause
	}
	return reason
}

// Job identifies the Job of a task.
type Job struct {
	containers.JobID
	// Over is the reason why the Job no longer needs this task, or empty if the task ended first
	// or has not ended. If the Job continues later, it becomes another task.
	Over string `json:"over,omitempty"`
}

// StopOrder is the order to stop a task. It is stored in the task's record, so that the next
// daemon continues the stop.
type StopOrder struct {
	// At is the wall-clock time of the request.
	At time.Time `json:"at"`
	// Grace is the time from At to the kill. 0 kills at once.
	Grace time.Duration `json:"grace"`
}

// Left returns the time until the kill, which is at most Grace, also if the clock was set
// back.
func (o StopOrder) Left(now time.Time) time.Duration {
	return max(0, min(o.Grace, o.At.Add(o.Grace).Sub(now)))
}
