package runner

import (
	"context"
	"slices"
	"strings"

	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/record"
	"carma/runner/request"
	"carma/runner/rights"
)

// Who may see a task's environment and output.
const (
	VisibilityPrivate = "private" // its owner, and others as the table of rights says
	VisibilityOpen    = "open"    // everybody
)

// authorizeReading refuses the output of a task that the caller may not read.
func (r *Runner) authorizeReading(ctx context.Context, rec *record.Record) error {
	who, ok := request.CallerFrom(ctx)
	if !ok && !r.may(ctx, rights.Output, rec) {
		return request.Errorf(403, callerUnknown)
	}
	if !ok {
		return nil
	}
	return r.authorize(who, rights.Output, rec, "")
}

// present returns a task as the caller may see it. environment is the right to see the
// values of its environment in this answer.
func (r *Runner) present(ctx context.Context, rec *record.Record, q queueView, environment rights.Action) api.Task {
	v := r.view(r.shown(ctx, rec, environment), q)
	if !r.may(ctx, rights.Progress, rec) {
		v.Progress, v.Params, v.Trainable = withoutOutput(v.Progress), 0, 0
	}
	return v
}

// shown returns a record as the caller may see it. Without the right to the environment,
// the caller sees the names of its variables without their values. Without the right to
// the output, the caller sees no line of it. The command line is always shown, because
// the machine's process list shows it too.
func (r *Runner) shown(ctx context.Context, rec *record.Record, environment rights.Action) *record.Record {
	values, output := r.may(ctx, environment, rec), r.may(ctx, rights.Output, rec)
	if values && output {
		return rec
	}
	c := *rec
	if !values {
		c.Submit.Env, c.Hidden = masked(rec.Submit.Env), len(rec.Submit.Env) > 0
	}
	if output {
		return &c
	}
	c.Task.Attempts = slices.Clone(rec.Task.Attempts)
	for i := range c.Task.Attempts {
		a := &c.Task.Attempts[i]
		a.Reason = unquoted(a.Reason)
		if a.Class == model.ExitProgram {
			a.Message = withoutQuote(a.Message)
		}
	}
	c.Task.Reason = unquoted(rec.Task.Reason)
	if len(rec.Ends) > 0 {
		c.Ends = map[int]*record.AttemptEnd{}
		for n, end := range rec.Ends {
			c.Ends[n] = end.WithoutQuotes()
		}
	}
	return &c
}

// unquoted returns a reason without quotes of a program's output.
func unquoted(reason model.Reason) model.Reason {
	if reason.Code == model.ReasonProgram || reason.Code == model.ReasonText {
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
		return request.Errorf(422, "--visibility %q: choose private or open", s.Visibility)
	}
	if s.Visibility == "" && r.live().Open {
		s.Visibility = VisibilityOpen
	}
	return nil
}
