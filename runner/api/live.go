package api

import (
	"context"
	"encoding/json"
	"time"
)

// Live is the current state, or the changes since the previous event, without the fields
// that have not changed. It is the same for every caller, so it contains nothing that
// only some callers may see.
type Live struct {
	Seq   int64     `json:"seq"`
	Whole bool      `json:"whole,omitempty" doc:"all there is; else changes since the event before"`
	Now   time.Time `json:"now"`
	// Info omits parts that take long to count.
	Info *LiveInfo `json:"info,omitempty"`
	GPUs []GPU     `json:"gpus,omitempty" doc:"all of them"`
	// Tasks lists the unfinished tasks and a few that ended last. If there are more than
	// 2,000 unfinished tasks, Info contains the number left out.
	Tasks []LiveTask `json:"tasks,omitempty" doc:"new ones, and those that changed"`
	Gone  []int64    `json:"gone,omitempty" doc:"tasks that are not shown any more"`
	Queue []int64    `json:"queue,omitempty" doc:"the tasks in the queues, in order"`
	// Emptied is set if Queue is left out because nothing waits.
	Emptied bool `json:"emptied,omitempty" doc:"the queues are empty now"`
}

// LiveInfo is a summary of the daemon.
type LiveInfo struct {
	Version   string    `json:"version"`
	Policy    string    `json:"policy"`
	Source    string    `json:"source"`
	Simulated bool      `json:"simulated,omitempty"`
	Speed     float64   `json:"speed"`
	Queued    int       `json:"queued"`
	Running   int       `json:"running"`
	Suspended int       `json:"suspended,omitempty"`
	Held      int       `json:"held"`
	Draining  bool      `json:"draining,omitempty"`
	Paused    *Closure  `json:"paused,omitempty"`
	Trouble   []Trouble `json:"trouble,omitempty"`
	LeftOut   int       `json:"left_out,omitempty" doc:"unfinished tasks that are too many to be shown; the figures above count them"`
}

// LiveTask is a summary of a task.
type LiveTask struct {
	ID       int64  `json:"id"`
	Name     string `json:"name"`
	User     string `json:"user"`
	UID      int    `json:"uid"`
	Group    string `json:"group,omitempty"`
	Phase    string `json:"phase"`
	Priority string `json:"priority,omitempty" doc:"absent: normal"`
	GPUCount int    `json:"gpu_count"`
	GPUs     []int  `json:"gpus,omitempty" doc:"indexes of those it has"`
	// Memory is in bytes, per GPU.
	Need      int64     `json:"need,omitempty"`
	Estimate  int64     `json:"estimate,omitempty"`
	Submitted time.Time `json:"submitted"`
	Started   time.Time `json:"started,omitzero"`
	Ended     time.Time `json:"ended,omitzero"`
	Attempts  int       `json:"attempts,omitempty"`
	Waits     string    `json:"waits,omitempty"`
	Start     *Start    `json:"start,omitempty" doc:"when it is expected to start, of the first in the queue"`
	Share     float64   `json:"share,omitempty"`
	Doubt     bool      `json:"doubt,omitempty" doc:"the count that the share is of is not relied on"`
	ETA       time.Time `json:"eta,omitzero"`
	Slowdown  float64   `json:"slowdown,omitempty"`
	Reason    string    `json:"reason_code,omitempty"`
	Away      time.Time `json:"away,omitzero" doc:"since when it is suspended"`
	Idle      time.Time `json:"idle,omitzero" doc:"since when it does nothing"`
}

// Timeline lists the runs of tasks on GPUs over a time.
type Timeline struct {
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
	Now   time.Time `json:"now"`
	Runs  []Run     `json:"runs"`
	// Cut is set if there were too many tasks to read, so that the oldest are missing.
	Cut bool `json:"cut,omitempty" doc:"the oldest tasks are missing"`
}

// Run is one attempt of a task on its GPUs.
type Run struct {
	Task    int64     `json:"task"`
	Name    string    `json:"name"`
	User    string    `json:"user"`
	Attempt int       `json:"attempt"`
	GPUs    []int     `json:"gpus"`
	From    time.Time `json:"from"`
	Until   time.Time `json:"until,omitzero" doc:"absent: it goes on"`
	Outcome string    `json:"outcome,omitempty"`
	Again   string    `json:"again,omitempty" doc:"code of the reason why the task ran again"`
	// Suspended is in nanoseconds. Away is the beginning of a present suspension, Back the
	// time of the last resumption.
	Suspended time.Duration `json:"suspended,omitempty"`
	Away      time.Time     `json:"away,omitzero"`
	Back      time.Time     `json:"back,omitzero"`
	// Memory is in bytes on each GPU.
	Grant int64 `json:"grant"`
	Peak  int64 `json:"peak,omitempty"`
	// Stays lists the task's places between its suspensions. It is absent if the task was
	// never suspended.
	Stays []Stay `json:"stays,omitempty" doc:"where it was between its suspensions, the earliest first; absent: it was never suspended. Of many suspensions the last are known"`
}

// Stay is an interval during which a run was on some GPUs.
type Stay struct {
	GPUs  []int     `json:"gpus"`
	From  time.Time `json:"from"`
	Until time.Time `json:"until,omitzero" doc:"absent: it goes on"`
}

// WebLogin signs its caller in to the page, once.
type WebLogin struct {
	Ticket string    `json:"ticket"`
	Ends   time.Time `json:"ends" doc:"by the wall clock"`
	// Address is a loopback address with port, Socket a unix socket. Each is empty if it
	// does not exist.
	Address string `json:"address,omitempty"`
	Socket  string `json:"socket,omitempty"`
	Note    string `json:"note,omitempty" doc:"why one of them is missing though it was configured"`
}

// Web requests a login to the page.
func (c *Client) Web(ctx context.Context) (WebLogin, error) { return GetWebTicket.send(ctx, c, None{}) }

// Live streams the state, then its changes.
func (c *Client) Live(ctx context.Context, fn func(Live) error) error {
	return stream(ctx, c, WatchLive, None{}, func(event string, data []byte) error {
		var l Live
		if event != "live" {
			return nil
		}
		if err := json.Unmarshal(data, &l); err != nil {
			return err
		}
		return fn(l)
	})
}

// Timeline lists the attempts that ran within a time.
func (c *Client) Timeline(ctx context.Context, since, until time.Time) (Timeline, error) {
	return GetTimeline.send(ctx, c, TimelineOptions{since.Truncate(time.Second), until.Truncate(time.Second)})
}
