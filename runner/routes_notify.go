package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"carma/internal/suggest"
	"carma/runner/api"
	"carma/runner/notify"
	"carma/runner/record"
	"carma/runner/request"
	"carma/runner/rights"
)

// errNoPost is the answer if there is no outbox.
var errNoPost = &request.Error{Status: 503, Text: "the daemon sends no messages: their outbox cannot be opened; the administrator finds the reason in its log"}

// callerAndOutbox returns the caller, or an error if the caller is unknown or there is no
// outbox.
func (r *Runner) callerAndOutbox(ctx context.Context) (request.Caller, error) {
	who, err := request.KnownCaller(ctx)
	if err == nil && r.mail == nil {
		err = errNoPost
	}
	return who, err
}

// Notify returns the caller's message settings.
func (r *Runner) Notify(ctx context.Context) (api.Notify, error) {
	who, err := r.callerAndOutbox(ctx)
	if err != nil {
		return api.Notify{}, err
	}
	v := api.Notify{Events: r.mail.Defaults(who.UID), Channels: r.mail.Channels(who.UID), Relay: r.mail.Relay()}
	if r.authz.MayServer(rights.Channels, who) {
		v.Server, v.Trouble = r.mail.Server()
	}
	return v, nil
}

func (r *Runner) setNotify(ctx context.Context, s api.NotifySettings) error {
	who, err := r.callerAndOutbox(ctx)
	if err != nil {
		return err
	}
	if err := s.Check(false); err != nil {
		return request.Errorf(422, "%v", err)
	}
	return r.mail.SetUser(who.UID, s)
}

func (r *Runner) testNotify(ctx context.Context, t api.NotifyTest) ([]api.NotifyTested, error) {
	who, err := r.callerAndOutbox(ctx)
	if err != nil {
		return nil, err
	}
	names := r.mail.User(who.UID)
	if t.Server {
		if err := r.authz.AuthorizeServer(who, rights.Channels, "", "test"); err != nil {
			return nil, err
		}
		list, _ := r.mail.Server()
		names = nil
		for _, c := range list {
			names = append(names, c.Name)
		}
	}
	tested, err := r.mail.Test(ctx, who.UID, who.Name, t.Server, t.Channel)
	switch {
	case errors.Is(err, notify.ErrNoChannel):
		return nil, request.Errorf(422, "%s", noChannel(t.Channel, names))
	case errors.Is(err, notify.ErrTooSoon):
		return nil, request.Errorf(429, "%v", err)
	}
	return tested, err
}

// noChannel returns the text that a channel does not exist, with the existing channels.
func noChannel(name string, have []string) string {
	switch {
	case len(have) == 0:
		return "there are no channels for messages; carma notify says how to set some"
	case name == "":
		return "no channel is named; there are " + strings.Join(have, ", ")
	}
	return "no channel for messages: " + suggest.OneOf(name, have).Error()
}

// checkNotify refuses a task if its messages would go nowhere.
func (r *Runner) checkNotify(who request.Caller, s *api.Submit) error {
	for _, text := range s.Notify {
		w, err := api.ParseNotify(text)
		if err != nil || len(w.Events) == 0 {
			continue // another check reports the error; none needs no channel
		}
		if r.mail == nil {
			return errNoPost
		}
		have := r.mail.User(who.UID)
		if len(have) == 0 || w.Channel != "" && !slices.Contains(have, w.Channel) {
			return request.Errorf(422, "--notify %s: %s", text, noChannel(w.Channel, have))
		}
	}
	return nil
}

// undelivered returns the messages about a task that its owner has not received. Only the
// owner and administrators see them: a task that is open to all does not show its owner's
// channels.
func (r *Runner) undelivered(ctx context.Context, rec *record.Record) []string {
	if r.mail == nil || !r.authz.May(ctx, rights.Undelivered, rec) {
		return nil
	}
	return r.mail.Undelivered(rec.UID, int64(rec.ID()))
}

// checkMessages reports channels that could not send their last message. Users' channels
// are only counted.
func (r *Runner) checkMessages() api.Check {
	c := api.Check{Name: "messages", Status: "ok"}
	if r.mail == nil {
		c.Status, c.Detail, c.Fix = "failure", errNoPost.Text, "make "+r.opt.DataDir+"/notify usable for the daemon, and restart it"
		return c
	}
	server, trouble := r.mail.Server()
	users, failing := r.mail.Failing()
	c.Detail = fmt.Sprintf("channels of the administrator's: %d", len(server))
	switch {
	case trouble != "":
		c.Status, c.Detail, c.Fix = "warning", "the administrator's channels are not in force: their file has a fault", "carma notify tells administrators what it is; mend the file, then reload the daemon (SIGHUP)"
	case len(failing) > 0:
		c.Status, c.Detail, c.Fix = "warning", "sending failed last: "+strings.Join(failing, "; "), "carma notify test --server"
	case users > 0:
		c.Detail += fmt.Sprintf("; channels of users that failed last: %d; carma notify shows them to their owners", users)
	}
	return c
}
