package access

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

// Shown returns a record as the caller may see it. Without the right to the environment,
// the caller sees the names of its variables without their values. Without the right to
// the output, the caller sees no line of it. The command line is always shown, because
// the machine's process list shows it too.
func (a *Authorizer) Shown(ctx context.Context, rec *record.Record, environment rights.Action) *record.Record {
	values, output := a.May(ctx, environment, rec), a.May(ctx, rights.Output, rec)
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
		at := &c.Task.Attempts[i]
		at.Reason = record.UnquotedReason(at.Reason)
		if at.Class == model.ExitProgram {
			at.Message = record.WithoutQuote(at.Message)
		}
	}
	c.Task.Reason = record.UnquotedReason(rec.Task.Reason)
	if len(rec.Ends) > 0 {
		c.Ends = map[int]*record.AttemptEnd{}
		for n, end := range rec.Ends {
			c.Ends[n] = end.WithoutQuotes()
		}
	}
	return &c
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

// SetVisibility refuses an unknown visibility. If the request has none, it
// sets the daemon's default.
func (a *Authorizer) SetVisibility(s *api.Submit) error {
	switch s.Visibility {
	case "", VisibilityPrivate, VisibilityOpen:
	default:
		return request.Errorf(422, "--visibility %q: choose private or open", s.Visibility)
	}
	if s.Visibility == "" && a.settings().Open {
		s.Visibility = VisibilityOpen
	}
	return nil
}
