package api

import (
	"context"
	"time"
)

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
