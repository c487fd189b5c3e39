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

// Used is the use of one GPU on one day by the removed tasks of one user, account, group
// and image. Tasks are counted on the day of their end, in a row without a GPU.
type Used struct {
	Day     string `json:"day" doc:"2006-01-02, in the daemon's time zone"`
	User    string `json:"user"`
	Account string `json:"account,omitempty"`
	Group   string `json:"group,omitempty"`
	Image   string `json:"image,omitempty"`
	GPU     *int   `json:"gpu,omitempty" doc:"index"`

	Tasks     int     `json:"tasks,omitempty"`
	Succeeded int     `json:"succeeded,omitempty"`
	Failed    int     `json:"failed,omitempty"`
	Starts    int     `json:"starts,omitempty" doc:"tasks that had GPUs"`
	Waited    float64 `json:"waited,omitempty" doc:"seconds until their first start, of all"`

	OOMs       int     `json:"gpu_ooms,omitempty"`
	GPUSeconds float64 `json:"gpu_seconds,omitempty"`
	// AwaySeconds is not included in GPUSeconds.
	AwaySeconds float64 `json:"suspended_seconds,omitempty" doc:"seconds suspended, once for each GPU that the task had"`
	Booked      float64 `json:"booked,omitempty" doc:"GiB-seconds"`
	Wasted      float64 `json:"wasted,omitempty" doc:"GiB-seconds above their peaks"`
	Unmeasured  float64 `json:"unmeasured,omitempty" doc:"of gpu_seconds, those of attempts whose use of memory is not known; they are not in booked and wasted"`
	EnergyJ     float64 `json:"energy_j,omitempty"`
}

// Same reports whether two sums cover the same tasks and GPU.
func (u Used) Same(o Used) bool {
	return u.Day == o.Day && u.User == o.User && u.Account == o.Account && u.Group == o.Group && u.Image == o.Image &&
		(u.GPU == nil) == (o.GPU == nil) && (u.GPU == nil || *u.GPU == *o.GPU)
}

// Used lists the usage of removed tasks by day, for days from since up to, not including,
// until, as 2006-01-02. An empty date means no bound.
func (c *Client) Used(ctx context.Context, since, until string) ([]Used, error) {
	return GetUsed.send(ctx, c, UsedOptions{since, until})
}

// AuditRecord is an action of an administrator on an object of another user, or on the
// server.
type AuditRecord struct {
	At      time.Time `json:"at" doc:"the daemon's time"`
	Who     string    `json:"who"`
	UID     int       `json:"uid"`
	Action  string    `json:"action" doc:"of the table of rights: stop, exec, output, drain-gpus, ..."`
	Allowed bool      `json:"allowed" doc:"the caller had the right; the act may have failed for another reason"`
	// Task is the task concerned, or 0. Object names any other object.
	Task   int64  `json:"task,omitempty"`
	Object string `json:"object,omitempty" doc:"what it was about, if it was no task: group x, suite y, GPU 0"`
	// Owner is the owner of the task, group or suite, or empty for an action on the server.
	Owner    string `json:"owner,omitempty"`
	OwnerUID int    `json:"owner_uid,omitempty"`
	Detail   string `json:"detail,omitempty" doc:"the program of a command without its arguments, the fields of a change, the reason that was given"`
}

// Audit is a part of the audit log.
type Audit struct {
	Records []AuditRecord `json:"records" doc:"the newest that fit, the earliest first"`
	More    bool          `json:"more,omitempty" doc:"there are earlier ones that fit"`
	Damaged int           `json:"damaged,omitempty" doc:"lines of the log that cannot be read"`
	All     bool          `json:"all" doc:"the caller sees the acts of everybody; else the own acts, and acts on what is the caller's"`
	Now     time.Time     `json:"now"`
}

// Audit returns the records of the audit log that the caller may see.
func (c *Client) Audit(ctx context.Context, o AuditOptions) (Audit, error) {
	o.Limit = min(o.Limit, MaxAudit)
	return GetAudit.send(ctx, c, o)
}

// MaxAudit is the largest number of records in one answer.
const MaxAudit = 100_000
