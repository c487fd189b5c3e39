package messages

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"carma/internal/suggest"
	"carma/runner/api"
	"carma/runner/notify"
	"carma/runner/request"
	"carma/runner/rights"
)

// errNoPost is the answer if there is no outbox.
var errNoPost = &request.Error{Status: 503, Text: "the daemon sends no messages: their outbox cannot be opened; the administrator finds the reason in its log"}

// Channels holds the channels of users and of the administrator. All methods work without
// an outbox.
type Channels struct {
	post    *notify.Post // nil if there is no outbox
	dataDir string
	auth    Authority
}

// Authority decides whether a caller may use the administrator's channels.
type Authority interface {
	// MayServer reports whether a caller may do something to the server.
	MayServer(rights.Action, request.Caller) bool
	// AuthorizeServer refuses an act on the server that a caller may not do, and records it.
	AuthorizeServer(who request.Caller, a rights.Action, object, detail string) error
}

// NewChannels returns the channels of an outbox in a data folder, or of none if post is nil.
func NewChannels(post *notify.Post, dataDir string, auth Authority) *Channels {
	return &Channels{post: post, dataDir: dataDir, auth: auth}
}

// SetRules applies the administrator's rules about messages.
func (c *Channels) SetRules(rules notify.Rules) {
	if c.post != nil {
		c.post.SetRules(rules)
	}
}

// callerAndOutbox returns the caller, or an error if the caller is unknown or there is no
// outbox.
func (c *Channels) callerAndOutbox(ctx context.Context) (request.Caller, error) {
	who, err := request.KnownCaller(ctx)
	if err != nil {
		return who, err
	}
	if c.post == nil {
		return who, errNoPost
	}
	return who, nil
}

// View returns the caller's message settings.
func (c *Channels) View(ctx context.Context) (api.Notify, error) {
	who, err := c.callerAndOutbox(ctx)
	if err != nil {
		return api.Notify{}, err
	}
	v := api.Notify{Events: c.post.Defaults(who.UID), Channels: c.post.Channels(who.UID), Relay: c.post.Relay()}
	if c.auth.MayServer(rights.Channels, who) {
		v.Server, v.Trouble = c.post.Server()
	}
	return v, nil
}

// Set replaces the caller's message settings.
func (c *Channels) Set(ctx context.Context, s api.NotifySettings) error {
	who, err := c.callerAndOutbox(ctx)
	if err != nil {
		return err
	}
	if err := s.Check(false); err != nil {
		return request.Errorf(422, "%v", err)
	}
	return c.post.SetUser(who.UID, s)
}

// Test sends a test message to the caller's channels, or to the administrator's.
func (c *Channels) Test(ctx context.Context, t api.NotifyTest) ([]api.NotifyTested, error) {
	who, err := c.callerAndOutbox(ctx)
	if err != nil {
		return nil, err
	}
	names := c.post.User(who.UID)
	if t.Server {
		if err := c.auth.AuthorizeServer(who, rights.Channels, "", "test"); err != nil {
			return nil, err
		}
		list, _ := c.post.Server()
		names = nil
		for _, ch := range list {
			names = append(names, ch.Name)
		}
	}
	tested, err := c.post.Test(ctx, who.UID, who.Name, t.Server, t.Channel)
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

// CheckSubmit refuses a task if its messages would go nowhere.
func (c *Channels) CheckSubmit(who request.Caller, s *api.Submit) error {
	for _, text := range s.Notify {
		w, err := api.ParseNotify(text)
		if err != nil || len(w.Events) == 0 {
			continue // another check reports the error; none needs no channel
		}
		if c.post == nil {
			return errNoPost
		}
		have := c.post.User(who.UID)
		if len(have) == 0 || w.Channel != "" && !slices.Contains(have, w.Channel) {
			return request.Errorf(422, "--notify %s: %s", text, noChannel(w.Channel, have))
		}
	}
	return nil
}

// Undelivered returns the messages about a task that its owner has not received.
func (c *Channels) Undelivered(uid int, task int64) []string {
	if c.post == nil {
		return nil
	}
	return c.post.Undelivered(uid, task)
}

// Check reports channels that could not send their last message. Users' channels
// are only counted.
func (c *Channels) Check() api.Check {
	check := api.Check{Name: "messages", Status: "ok"}
	if c.post == nil {
		check.Status, check.Detail, check.Fix = "failure", errNoPost.Text, "make "+c.dataDir+"/notify usable for the daemon, and restart it"
		return check
	}
	server, trouble := c.post.Server()
	users, failing := c.post.Failing()
	check.Detail = fmt.Sprintf("channels of the administrator's: %d", len(server))
	switch {
	case trouble != "":
		check.Status, check.Detail, check.Fix = "warning", "the administrator's channels are not in force: their file has a fault", "carma notify tells administrators what it is; mend the file, then reload the daemon (SIGHUP)"
	case len(failing) > 0:
		check.Status, check.Detail, check.Fix = "warning", "sending failed last: "+strings.Join(failing, "; "), "carma notify test --server"
	case users > 0:
		check.Detail += fmt.Sprintf("; channels of users that failed last: %d; carma notify shows them to their owners", users)
	}
	return check
}
