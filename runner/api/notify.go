package api

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"carma/internal/suggest"
)

// The events of tasks and GPUs about which messages are sent. The last is for
// administrators.
const (
	NotifyStarted   = "started"
	NotifyFinished  = "finished"
	NotifyFailed    = "failed"
	NotifyStopped   = "stopped"
	NotifyRecovered = "recovered"
	NotifyIdle      = "idle"
	NotifyDevice    = "device"
	NotifySuspended = "suspended"
	NotifyResumed   = "resumed"
	NotifyFault     = "fault"
)

// NotifyEvents lists the events that a user can request, in the order of a task's life.
var NotifyEvents = []string{NotifyStarted, NotifyFinished, NotifyFailed, NotifyStopped, NotifyRecovered, NotifyIdle, NotifyDevice, NotifySuspended, NotifyResumed}

// NotifyDefaults lists the events that a channel gets by default.
var NotifyDefaults = []string{NotifyFinished, NotifyFailed, NotifyRecovered, NotifyIdle, NotifyDevice}

// A NotifyWant selects the events of a task about which messages are sent, and their
// channel.
type NotifyWant struct {
	Events  []string // if empty, no message is sent
	Channel string   // empty means all of the user's channels
}

func (w NotifyWant) String() string {
	text := "none"
	switch n := len(w.Events); {
	case n == len(NotifyEvents):
		text = "all"
	case n > 0:
		text = strings.Join(w.Events, ",")
	}
	if w.Channel != "" {
		text += ":" + w.Channel
	}
	return text
}

// Has reports whether a message about an event is requested.
func (w NotifyWant) Has(event string) bool { return slices.Contains(w.Events, event) }

// ParseNotify parses EVENT[,EVENT...][:CHANNEL], all or none.
func ParseNotify(text string) (w NotifyWant, err error) {
	events, channel, named := strings.Cut(text, ":")
	if w.Channel = channel; named {
		if err := CheckNotifyName(channel); err != nil {
			return w, err
		}
	}
	switch events {
	case "none":
		if named {
			return w, fmt.Errorf("%q: none is for all channels; leave %q out, or name the events", text, ":"+channel)
		}
		return w, nil
	case "all":
		w.Events = NotifyEvents
		return w, nil
	}
	for _, event := range strings.Split(events, ",") {
		event = strings.TrimSpace(event)
		if err := suggest.OneOf(event, append(slices.Clone(NotifyEvents), "all", "none")); err != nil {
			return w, err
		}
		if event == "all" || event == "none" {
			return w, fmt.Errorf("%q: %s stands alone; write for example failed,finished", text, event)
		}
		if !slices.Contains(w.Events, event) {
			w.Events = append(w.Events, event)
		}
	}
	return w, nil
}

// NotifyChannel is a destination of messages. It contains secrets: it is sent only to the
// daemon, never from it.
type NotifyChannel struct {
	Name string `json:"name" maxLength:"32" doc:"small letters, digits and dashes"`
	Kind string `json:"kind" enum:"webhook,slack,mail,hook" doc:"hook: a program of the administrator's"`
	// Events are the events of the channel; if empty, the settings' events apply.
	Events []string `json:"events,omitempty" maxItems:"16" doc:"the events it gets; empty: those of all channels"`
	// Output: nil is true.
	Output *bool `json:"output,omitempty" doc:"whether messages of a failure have the last lines of the output (default true)"`

	URL     string            `json:"url,omitempty" maxLength:"2000" doc:"of a webhook or of Slack's; it is never shown"`
	Format  string            `json:"format,omitempty" enum:"json,text" doc:"body of a webhook: json (default), or text with a header Title"`
	Headers map[string]string `json:"headers,omitempty" doc:"further headers of a webhook"`

	To       []string `json:"to,omitempty" maxItems:"10" doc:"mail addresses"`
	Server   string   `json:"server,omitempty" maxLength:"260" doc:"mail server, host:port; empty: the administrator's relay"`
	TLS      string   `json:"tls,omitempty" enum:"starttls,tls,none" doc:"how mail travels: starttls (default), tls from the start, or none"`
	From     string   `json:"from,omitempty" maxLength:"254" doc:"sender's address; needed with a server"`
	User     string   `json:"user,omitempty" maxLength:"254" doc:"login at the mail server; of a hook: the user that it runs as"`
	Password string   `json:"password,omitempty" maxLength:"1000"`

	Command string `json:"command,omitempty" maxLength:"1000" doc:"path of a hook's program"`
}

// NotifySettings contains the channels of one user, or of the administrator.
type NotifySettings struct {
	Events   []string        `json:"events,omitempty" maxItems:"16" doc:"for channels without events of their own; empty: the daemon's default"`
	Channels []NotifyChannel `json:"channels" maxItems:"8"`
	// The following fields are only in the administrator's file. Relay is the mail server
	// for channels that name none. Allow lists the destinations that users' channels may
	// have in addition to the public internet. Defaults lists the events of channels that
	// name none.
	Relay    *NotifyChannel `json:"relay,omitempty" doc:"only in the administrator's file"`
	Allow    []string       `json:"allow,omitempty" doc:"only in the administrator's file"`
	Defaults []string       `json:"defaults,omitempty" doc:"only in the administrator's file"`
}

// NotifyState is a channel without its secrets, for display.
type NotifyState struct {
	Name    string    `json:"name"`
	Kind    string    `json:"kind"`
	To      string    `json:"to" doc:"host of the address, or mail addresses"`
	Events  []string  `json:"events"`
	Waiting int       `json:"waiting" doc:"messages that are not sent yet"`
	Sent    time.Time `json:"sent,omitzero" doc:"when the last one was sent, since the daemon's start"`
	Failed  time.Time `json:"failed,omitzero" doc:"when sending failed last; absent: it has worked since"`
	Error   string    `json:"error,omitempty" doc:"what was wrong then"`
	Dropped int       `json:"dropped,omitempty" doc:"messages that were given up, since the daemon's start"`
}

// Notify contains the caller's message settings.
type Notify struct {
	Events   []string      `json:"events" doc:"of channels without events of their own"`
	Channels []NotifyState `json:"channels"`
	Relay    bool          `json:"relay" doc:"the administrator has set a mail server"`
	// Server lists the administrator's channels, for administrators.
	Server  []NotifyState `json:"server,omitempty"`
	Trouble string        `json:"trouble,omitempty" doc:"what is wrong with the administrator's file; for administrators"`
}

// NotifyTest requests a test message.
type NotifyTest struct {
	Channel string `json:"channel,omitempty" maxLength:"32" doc:"empty: all of the caller's"`
	Server  bool   `json:"server,omitempty" doc:"the administrator's channels; for administrators"`
}

// NotifyTested is the result of a test message.
type NotifyTested struct {
	Channel string `json:"channel"`
	Kind    string `json:"kind"`
	OK      bool   `json:"ok"`
	Text    string `json:"text" doc:"what the receiver answered, in short"`
}

// Notify returns the caller's message settings.
func (c *Client) Notify(ctx context.Context) (Notify, error) { return GetNotify.send(ctx, c, None{}) }

// SetNotify replaces the caller's channels.
func (c *Client) SetNotify(ctx context.Context, s NotifySettings) (Notify, error) {
	return SetNotify.send(ctx, c, With[NotifySettings]{s})
}

// TestNotify sends a test message now.
func (c *Client) TestNotify(ctx context.Context, t NotifyTest) ([]NotifyTested, error) {
	return TestNotify.send(ctx, c, With[NotifyTest]{t})
}
