package api

import (
	"context"
	"time"
)

// History lists the events and decisions about a task, from the journal.
type History struct {
	Task int64 `json:"task"`
	// Lines are in order, the earliest first. A long history contains only its first and
	// last lines.
	Lines []Happened `json:"lines"`
	// LeftOut is the number of lines missing after line number Gap, counted from 1.
	LeftOut int `json:"left_out,omitempty" doc:"lines that are missing in the middle"`
	Gap     int `json:"gap,omitempty" doc:"they are missing after so many lines"`
	// Unread is a time for which the journal was not read, because it is long, or because
	// the journal no longer contains it.
	Unread *Span     `json:"unread,omitempty" doc:"a time that was not looked through"`
	Gone   bool      `json:"gone,omitempty" doc:"the journal does not reach back to its submission"`
	Waits  string    `json:"waits,omitempty" doc:"why it waits now"`
	Now    time.Time `json:"now"`
}

// Span is an interval of time.
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

// History returns the history of a task.
func (c *Client) History(ctx context.Context, ref string) (History, error) {
	return GetHistory.send(ctx, c, TaskPath{ref})
}
