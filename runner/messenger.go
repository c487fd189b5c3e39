package runner

import (
	"context"
	"encoding/json"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"carma/mapper"
	"carma/mapper/model"
	"carma/mapper/words"
	"carma/runner/journal"
	"carma/runner/notify"
	"carma/runner/verify"
)

// Messages are made from the journal, not by the loop, which only wakes the journal's
// reader. So neither a receiver nor a slow disk delays the loop. A killed daemon loses no
// message, because the next daemon continues where the outbox ends. See
// docs/monitoring.md.

// Notifying holds the settings of messages.
type Notifying struct {
	Rules notify.Rules
	Pace  notify.Pace // zero means notify.DefaultPace
}

const (
	// readAtMost is the number of events read at a time. The position is stored after
	// keptAfter events without a message.
	readAtMost, keptAfter = 2000, 500
	// readAnyway is the time after which the journal is read without a wake-up.
	readAnyway = time.Minute
	// readRetry is the pause after the journal or the outbox failed.
	readRetry = 5 * time.Second
)

// messaging holds the runner's fields for messages.
type messaging struct {
	mail    *notify.Post  // nil if no messages are sent
	letters chan struct{} // wakes the messenger
	// telling is the last event with executed decisions. For events up to it, only WakeAt
	// decisions may be stored later.
	telling atomic.Int64
}

// messenger makes messages from the journal. Only its own goroutine uses the fields.
type messenger struct {
	r      *Runner
	seq    int64 // everything up to here was read
	stored int64 // everything up to here is in the outbox
	// faults are the broken GPUs, with the fault that was reported.
	faults map[model.GPUID]string
	failed bool
}

// openOutbox opens the outbox. Without it the daemon works all the same.
func (r *Runner) openOutbox(o Notifying, host string) {
	if o.Pace == (notify.Pace{}) {
		o.Pace = notify.DefaultPace
	}
	post, err := notify.Open(notify.Options{Dir: filepath.Join(r.opt.DataDir, "notify"), Host: host, Log: r.Log, Count: r.pages.Message, Pace: o.Pace})
	if err != nil {
		r.Log.Error().Err(err).Msg("no messages are sent: their outbox cannot be opened")
		return
	}
	post.SetRules(o.Rules)
	r.mail = post
}

// SetMessageRules applies the administrator's rules about messages.
func (r *Runner) SetMessageRules(rules notify.Rules) {
	if r.mail != nil {
		r.mail.SetRules(rules)
	}
}

// newMessenger finds the position from which messages are made: each event after it may
// cause a message, also an event before the messenger runs. It returns nil if no messages
// are sent.
func (r *Runner) newMessenger() *messenger {
	if r.mail == nil {
		return nil
	}
	m := &messenger{r: r, faults: map[model.GPUID]string{}}
	m.begin()
	return m
}

// work reads and sends until ctx ends.
func (m *messenger) work(ctx context.Context) {
	if m == nil {
		return
	}
	r := m.r
	var sending sync.WaitGroup
	sending.Go(func() { r.mail.Run(ctx) })
	defer func() {
		sending.Wait()
		if err := r.mail.Close(); err != nil {
			r.Log.Warn().Err(err).Msg("the outbox of messages could not be closed cleanly")
		}
	}()
	for ctx.Err() == nil {
		wait := readAnyway
		switch more, err := m.read(ctx); {
		case err != nil:
			if ctx.Err() == nil && !m.failed {
				r.Log.Error().Err(err).Msg("the reader of messages cannot go on; it tries again")
			}
			m.failed, wait = true, readRetry
		case more:
			continue
		default:
			m.failed = false
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-r.letters:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// begin finds the event where the last daemon stopped. The first daemon that sends
// messages begins at the journal's end.
func (m *messenger) begin() {
	seq, state, known := m.r.mail.Place()
	_, last, err := m.r.Journal.Bounds()
	switch {
	case known && (err != nil || seq <= last):
		m.seq, m.stored = seq, seq
		_ = json.Unmarshal(state, &m.faults)
		return
	case known:
		m.r.Log.Warn().Int64("event", last).Msg("the journal was set back; messages go on from its end")
	}
	m.seq = last
	if err := m.r.mail.Put(last, nil, nil); err != nil {
		m.r.Log.Error().Err(err).Msg("the place of messages cannot be stored")
	}
	m.stored = last
}

// read makes the messages of the next events, and reports whether there are more.
func (m *messenger) read(ctx context.Context) (more bool, err error) {
	var list []notify.Owned
	seq := m.seq
	faults := cloneMap(m.faults)
	told := m.r.telling.Load() // read before the journal is opened, so that the journal has all events up to it
	err = m.r.Journal.View(func(j *journal.Reader) error {
		first, _, err := j.Bounds()
		if err != nil {
			return err
		}
		if first > seq+1 {
			m.r.Log.Warn().Int64("from", seq+1).Int64("to", first-1).Msg("events are no longer in the journal: their messages are lost")
			seq = first - 1
		}
		last, err := j.Decided()
		if last = max(last, told); err != nil || last <= seq {
			return err
		}
		begun := seq
		for p, err := range verify.History(j, seq) {
			if err != nil {
				return err
			}
			if p.Seq > last {
				break
			}
			if more = p.Seq-begun >= readAtMost; more {
				break
			}
			list = append(list, m.of(ctx, p, faults)...)
			seq = p.Seq
		}
		return nil
	})
	if err != nil {
		return false, err
	}
	if len(list) > 0 || seq-m.stored >= keptAfter {
		state, _ := json.Marshal(faults)
		if err := m.r.mail.Put(seq, state, list); err != nil {
			return false, err
		}
		m.stored = seq
	}
	m.seq, m.faults = seq, faults
	return more, nil
}

func cloneMap[K comparable, V any](m map[K]V) map[K]V {
	c := make(map[K]V, len(m))
	for k, v := range m {
		c[k] = v
	}
	return c
}

// wakeMessenger wakes the reader if there may be a message.
func (r *Runner) wakeMessenger(ev model.Event, decisions []model.Decision) {
	if r.mail == nil || !tells(ev, decisions) {
		return
	}
	r.telling.Store(r.loop.Seq())
	select {
	case r.letters <- struct{}{}:
	default:
	}
}

// tells reports whether an event may lead to a message.
func tells(ev model.Event, decisions []model.Decision) bool {
	for _, d := range decisions {
		switch d.(type) {
		case model.Finish, model.Requeue, model.Idle, model.Suspend, model.Resume:
			return true
		}
	}
	switch ev := ev.(type) {
	case model.Started, model.GPUsFound:
		return true
	case model.Sampled:
		for i := range ev.GPUs {
			if ev.GPUs[i].Fault != "" {
				return true
			}
		}
	}
	return false
}

// ofFaults returns the messages about GPUs that a sample finds broken, or healthy again.
// faults holds the faults reported before.
func (m *messenger) ofFaults(p verify.Step, ev model.Sampled, faults map[model.GPUID]string) (list []notify.Owned) {
	for _, g := range ev.GPUs {
		was, is := faults[g.ID], g.Fault
		switch {
		case was == is:
			continue
		case is == "":
			delete(faults, g.ID)
			list = append(list, m.fault(p, g.ID, "it is well again"))
		default:
			faults[g.ID] = is
			list = append(list, m.fault(p, g.ID, is))
		}
	}
	return list
}

// ofMissing returns the messages about GPUs that a daemon no longer finds.
func (m *messenger) ofMissing(ctx context.Context, p verify.Step, faults map[model.GPUID]string) (list []notify.Owned) {
	var pages []model.GPU
	if m.r.loop.Look(ctx, func(s *mapper.State) { pages = s.GPUs() }) != nil {
		return nil
	}
	for _, g := range pages {
		switch was := faults[g.ID]; {
		case g.Missing && was != words.Missing:
			faults[g.ID] = words.Missing
			list = append(list, m.fault(p, g.ID, words.Missing))
		case !g.Missing && was == words.Missing:
			delete(faults, g.ID)
			list = append(list, m.fault(p, g.ID, "it is there again"))
		}
	}
	return list
}
