package runner

import (
	"path/filepath"

	"carma/runner/messages"
	"carma/runner/notify"
)

// Notifying holds the settings of messages.
type Notifying struct {
	Rules notify.Rules
	Pace  notify.Pace // zero means notify.DefaultPace
}

// openOutbox opens the outbox. Without it the daemon works all the same.
func (r *Runner) openOutbox(o Notifying, host string) {
	if o.Pace == (notify.Pace{}) {
		o.Pace = notify.DefaultPace
	}
	post, err := notify.Open(notify.Options{Dir: filepath.Join(r.opt.DataDir, "notify"), Host: host, Log: r.Log, Count: r.pages.Message, Pace: o.Pace})
	if err != nil {
		r.Log.Error().Err(err).Msg("no messages are sent: their outbox cannot be opened")
	} else {
		post.SetRules(o.Rules)
		r.messenger = messages.New(messages.Deps{
			Post: post, Journal: r.Journal, Logs: r.Logs, Log: r.Log, Instance: r.instance,
			Find: r.find.Find, Index: r.gpus.Index, Look: r.loop.Look,
		})
	}
	r.channels = messages.NewChannels(post, r.opt.DataDir, r.authz)
}

// SetMessageRules applies the administrator's rules about messages.
func (r *Runner) SetMessageRules(rules notify.Rules) { r.channels.SetRules(rules) }
