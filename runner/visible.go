package runner

import (
	"context"
	"os"
	"slices"
	"strings"

	"carma/mapper"
	"carma/runner/api"
)

// Who may see a task's environment and output.
const (
	VisibilityPrivate = "private" // its owner and admins
	VisibilityOpen    = "open"    // everybody
)

// admin reports whether somebody may act on the tasks of others: root, the user
// that the daemon runs as, the members of the admin group, and the users of a cluster
// who are named as such.
func (r *Runner) admin(who Caller) bool {
	if who.Subject != nil {
		return r.clusterAdmin(who.Subject)
	}
	return who.UID == 0 || who.UID == os.Geteuid() || (r.live().AdminGroup != "" && slices.Contains(who.Groups, r.live().AdminGroup))
}

// mayAdmin refuses a request that is for admins only.
func (r *Runner) mayAdmin(ctx context.Context, what string) error {
	who, ok := callerFrom(ctx)
	switch {
	case !ok:
		return refusef(403, callerUnknown)
	case r.admin(who):
		return nil
	case who.Subject != nil:
		return refusef(403, "%s is for the administrators of carma (kubernetes-admins); you are %s", what, who.Name)
	case r.live().AdminGroup == "":
		return refusef(403, "%s is for root; you are %s", what, who.Name)
	}
	return refusef(403, "%s is for root and group %s; you are %s", what, r.live().AdminGroup, who.Name)
}

// sees reports whether the caller may see all of a task. An unknown caller sees
// as much as another user.
func (r *Runner) sees(ctx context.Context, rec *Record) bool {
	if rec.Submit.Visibility == VisibilityOpen {
		return true
	}
	who, ok := callerFrom(ctx)
	return ok && (owns(who, rec) || r.admin(who))
}

// mayRead refuses the output of a task that the caller may not see.
func (r *Runner) mayRead(ctx context.Context, rec *Record) error {
	if r.sees(ctx, rec) {
		return nil
	}
	return refusef(403, "task %d is %s's and private: its output is for %s and administrators; %s can submit tasks with --visibility open", rec.ID(), rec.User, rec.User, rec.User)
}

// shown returns a record as the caller may see it. Of a private task, others
// see the names of its variables without their values, and no line of its
// output. Its command line stays: the machine's process list has it too.
func (r *Runner) shown(ctx context.Context, rec *Record) *Record {
	if r.sees(ctx, rec) {
		return rec
	}
	c := *rec
	c.Submit.Env, c.hidden = masked(rec.Submit.Env), len(rec.Submit.Env) > 0
	c.Task.Attempts = slices.Clone(rec.Task.Attempts)
	for i := range c.Task.Attempts {
		a := &c.Task.Attempts[i]
		a.Reason = unquoted(a.Reason)
		if a.Class == mapper.ExitProgram {
			a.Message = withoutQuote(a.Message)
		}
	}
	c.Task.Reason = unquoted(rec.Task.Reason)
	if len(rec.Ends) > 0 {
		c.Ends = map[int]*attemptEnd{}
		for n, end := range rec.Ends {
			c.Ends[n] = end.withoutQuotes()
		}
	}
	return &c
}

// unquoted returns a reason without quotes of a program's output.
func unquoted(reason mapper.Reason) mapper.Reason {
	if reason.Code == mapper.ReasonProgram || reason.Code == mapper.ReasonText {
		reason.Text = withoutQuote(reason.Text)
	}
	if reason.Cause != nil {
		cause := unquoted(*reason.Cause)
		reason.Cause = &cause
	}
	return reason
}

// masked returns variables without their values.
func masked(env []string) []string {
	out := make([]string, len(env))
	for i, kv := range env {
		key, _, _ := strings.Cut(kv, "=")
		out[i] = key + "=***"
	}
	return out
}

// withoutQuote cuts the text after the exit code.
func withoutQuote(message string) string {
	before, _, _ := strings.Cut(message, ": ")
	return before
}

// checkVisibility refuses an unknown visibility. If the request has none, it
// sets the daemon's default.
func (r *Runner) checkVisibility(s *api.Submit) error {
	switch s.Visibility {
	case "", VisibilityPrivate, VisibilityOpen:
	default:
		return refusef(422, "--visibility %q: choose private or open", s.Visibility)
	}
	if s.Visibility == "" && r.live().Open {
		s.Visibility = VisibilityOpen
	}
	return nil
}
