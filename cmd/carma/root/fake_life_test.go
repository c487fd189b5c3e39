package root

import (
	"time"

	"carma/runner/api"
)

// lifeOf returns the history of a canned task.
func lifeOf(t *api.Task) *api.History {
	at := func(d time.Duration) time.Time { return t.Submitted.Add(d) }
	return &api.History{Task: t.ID, Now: noon, LeftOut: 3, Gap: 2, Waits: "every GPU is full", Gone: true, Lines: []api.Happened{
		{At: at(0), Kind: "task-submitted", Text: "submitted by " + t.User + ", on 1 GPU"},
		{At: at(time.Second), Kind: "estimated", Text: "estimated at 1.0 GiB on each GPU (declared)"},
		{At: at(2 * time.Second), Kind: "launch", Attempt: 1, Text: "launched on GPU 2 with 1.0 GiB booked"},
		{At: at(5 * time.Second), Kind: "finish", Text: "failed: exit code 1 (\x1b[31mred)", Reason: "program"},
	}, Unread: &api.Span{From: at(time.Hour), Until: at(2 * time.Hour)}}
}
