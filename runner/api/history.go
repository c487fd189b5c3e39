package api

import (
	"context"
	"time"
)

// History is what happened to a task, and what was decided about it, as the journal
// has it.
type History struct {
	Task int64 `json:"task"`
	// Lines are in order, the earliest first. Of a long life the first and the last ones.
	Lines []Happened `json:"lines"`
	// LeftOut is how many lines are missing after line number Gap, counted from 1.
	LeftOut int `json:"left_out,omitempty" doc:"lines that are missing in the middle"`
	Gap     int `json:"gap,omitempty" doc:"they are missing after so many lines"`
	// Unread is a time of which the journal was not looked through, because it is long,
	// or which it does not have any more.
	Unread *Span     `json:"unread,omitempty" doc:"a time that was not looked through"`
	Gone   bool      `json:"gone,omitempty" doc:"the journal does not reach back to its submission"`
	Waits  string    `json:"waits,omitempty" doc:"why it waits now"`
	Now    time.Time `json:"now"`
}

// Span is a time.
type Span struct {
	From  time.Time `json:"from"`
	Until time.Time `json:"until"`
}

// Happened is one event or decision.
type Happened struct {
	At      time.Time `json:"at"`
	Kind    string    `json:"kind" doc:"of the event or decision in the journal: task-submitted, launch, requeue, ...; waits: a reason for which it waited, as the daemon saw it now and then since its start"`
	Attempt int       `json:"attempt,omitempty"`
	Text    string    `json:"text" doc:"a sentence without its subject, the task"`
	Reason  string    `json:"reason_code,omitempty"`
}

// History tells what happened to a task.
func (c *Client) History(ctx context.Context, ref string) (History, error) {
	return GetHistory.send(ctx, c, TaskPath{ref})
}
