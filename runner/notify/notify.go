// Package notify sends messages about tasks and GPUs to people: by a webhook, Slack,
// mail, or a program of the administrator.
//
// The package does not depend on the daemon: the runner passes messages ([Post.Put]) with
// their place in the journal, and both are stored together. So each message is sent at
// least once, even if the daemon is killed, and always with the same id.
//
// Each channel has a worker of its own. A receiver that hangs delays only its own
// messages. Messages that arrive while a channel waits are sent as one message.
//
// Users choose the addresses, and the daemon may be root; see [guard]. The package opens
// no file of a user either, because a link could lead to the secrets of other users, and
// it cannot read a home on NFS. The command line reads the file as its user and sends it
// over the socket. The settings are stored per uid in notify/users of the data folder,
// mode 600, and are never returned.
//
// A channel collects for 2 s and sends at most every 15 s, each sending within 15 s. The
// first 20 entries of a message are sent in full; up to 5 keep their lines of output.
// After a failure it tries again after 5 s, then 10 s, up to 15 minutes, for a day;
// Retry-After is honoured up to an hour. Deliveries are recorded without a sync, so a
// crash of the machine may repeat a message.
package notify

import (
	"time"

	"carma/runner/api"
)

// Message describes one event.
type Message struct {
	// ID is the same each time the message is sent, so that a receiver can drop
	// duplicates.
	ID    string    `json:"id"`
	Event string    `json:"event"` // one of api.NotifyEvents, or fault
	Time  time.Time `json:"time"`
	Task  int64     `json:"task,omitempty"` // or 0 if the message is about a GPU
	Name  string    `json:"name,omitempty"`
	User  string    `json:"user,omitempty"`
	Group string    `json:"group,omitempty"`
	// ExitCode is set if the task's program has exited and was not stopped.
	ExitCode *int `json:"exit_code,omitempty"`
	// Reason is a sentence written by carma.
	Reason   string  `json:"reason,omitempty"`
	Attempts int     `json:"attempts,omitempty"`
	GPUs     []int   `json:"gpus,omitempty"` // indices
	Seconds  float64 `json:"run_seconds,omitempty"`
	// Output are the last lines of a task that failed, for its owner alone.
	Output []string `json:"output,omitempty"`
}

// Owned is a message with the users who may get it.
type Owned struct {
	Message
	UID    int      // UID of the task's owner, or below 0 for nobody
	Wants  []string // the task's own choice, as api.ParseNotify reads it
	Public string   // Message.Reason for users who may not see all
}

// forOthers returns the message without the parts for its owner alone.
func (o Owned) forOthers() Message {
	m := o.Message
	m.Output, m.Reason = nil, o.Public
	return m
}

// wants reports whether a task's own choice sends an event to a channel; chosen is false
// if the task has no choice of its own.
func wants(list []string, event, channel string) (is, chosen bool) {
	for _, text := range list {
		if w, err := api.ParseNotify(text); err == nil && (w.Channel == "" || w.Channel == channel) && w.Has(event) {
			is = true
		}
	}
	return is, len(list) > 0
}

// admin is the owner of the administrator's channels, in place of a uid.
const admin = -1

// key names a channel.
type key struct {
	UID  int    `json:"uid"`
	Name string `json:"name"`
}

// Bounds of stored and sent messages.
const (
	// most is the largest number of messages that wait in a channel. Older messages are
	// dropped.
	most = 2000
	// inFull is the number of messages with full text in one sending. Of further messages
	// only the task numbers are sent.
	inFull = 20
	// withOutput is the largest number of messages in a sending that includes output of
	// failed tasks.
	withOutput = 5
	// giveUp is the age at which an unsent message is dropped.
	giveUp = 24 * time.Hour
)

// Pace contains the intervals and limits of a channel's sending.
type Pace struct {
	// Collect is the wait for more messages before the first goes out. Rest is the time
	// between two sendings.
	Collect, Rest time.Duration
	// Retry is the wait after a failure. The wait doubles with each failure, up to
	// Longest.
	Retry, Longest time.Duration
	// Limit is the longest time of one sending.
	Limit time.Duration
}

// DefaultPace is the pace of the daemon.
var DefaultPace = Pace{Collect: 2 * time.Second, Rest: 15 * time.Second, Retry: 5 * time.Second, Longest: 15 * time.Minute, Limit: 15 * time.Second}
