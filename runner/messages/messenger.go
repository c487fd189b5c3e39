package messages

import (
	"context"
	"encoding/json"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"carma/mapper"
	"carma/mapper/model"
	"carma/mapper/words"
	"carma/runner/journal"
	"carma/runner/notify"
	"carma/runner/record"
	"carma/runner/tasklog"
	"carma/runner/verify"

	"github.com/rs/zerolog"
)

const (
	// readAtMost is the number of events read at a time. The position is stored after
	// keptAfter events without a message.
	readAtMost, keptAfter = 2000, 500
	// readAnyway is the time after which the journal is read without a wake-up.
	readAnyway = time.Minute
	// readRetry is the pause after the journal or the outbox failed.
	readRetry = 5 * time.Second
)

// Deps holds the parts and funcs that a messenger uses.
type Deps struct {
	Post    *notify.Post
	Journal *journal.Journal
	Logs    *tasklog.Store
	Log     zerolog.Logger
	// Instance labels the daemon's data folder, for the ids of messages.
	Instance string
	// Find returns the record of the task that ref names.
	Find func(ref string) (*record.Record, error)
	// Index returns the index of a GPU, or -1 if it is unknown.
	Index func(model.GPUID) int
	// Look calls a func that may read the state.
	Look func(context.Context, func(*mapper.State)) error
}

// Messenger makes messages from the journal. A nil messenger does nothing.
type Messenger struct {
	Deps
	letters chan struct{} // wakes the messenger
	// decided is the last event with executed decisions. For events up to it, only WakeAt
	// decisions may be stored later.
	decided atomic.Int64

	// Only the goroutine of Run uses these.
	seq    int64 // everything up to here was read
	stored int64 // everything up to here is in the outbox
	// faults are the broken GPUs, with the fault that was reported.
	faults map[model.GPUID]string
	failed bool
}

// New returns a messenger. Call [Messenger.Begin] and then [Messenger.Run].
func New(deps Deps) *Messenger {
	return &Messenger{Deps: deps, letters: make(chan struct{}, 1), faults: map[model.GPUID]string{}}
}

// Run reads the journal and sends messages until ctx ends.
func (m *Messenger) Run(ctx context.Context) {
	if m == nil {
		return
	}
	var sending sync.WaitGroup
	sending.Go(func() { m.Post.Run(ctx) })
	defer func() {
		sending.Wait()
		if err := m.Post.Close(); err != nil {
			m.Log.Warn().Err(err).Msg("the outbox of messages could not be closed cleanly")
		}
	}()
	for ctx.Err() == nil {
		wait := readAnyway
		switch more, err := m.read(ctx); {
		case err != nil:
			if ctx.Err() == nil && !m.failed {
				m.Log.Error().Err(err).Msg("the reader of messages cannot go on; it tries again")
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
		case <-m.letters:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// Begin finds the event from which messages are made, where the last daemon stopped: each
// event after it may cause a message. The first daemon that sends messages begins at the
// journal's end.
func (m *Messenger) Begin() {
	if m == nil {
		return
	}
	seq, state, known := m.Post.Place()
	_, last, err := m.Journal.Bounds()
	switch {
	case known && (err != nil || seq <= last):
		m.seq, m.stored = seq, seq
		_ = json.Unmarshal(state, &m.faults)
		return
	case known:
		m.Log.Warn().Int64("event", last).Msg("the journal was set back; messages go on from its end")
	}
	m.seq = last
	if err := m.Post.Put(last, nil, nil); err != nil {
		m.Log.Error().Err(err).Msg("the place of messages cannot be stored")
	}
	m.stored = last
}

// read makes the messages of the next events, and reports whether there are more.
func (m *Messenger) read(ctx context.Context) (more bool, err error) {
	var list []notify.Owned
	seq := m.seq
	faults := map[model.GPUID]string{}
	maps.Copy(faults, m.faults)
	told := m.decided.Load() // read before the journal is opened, so that the journal has all events up to it
	err = m.Journal.View(func(j *journal.Reader) error {
		first, _, err := j.Bounds()
		if err != nil {
			return err
		}
		if first > seq+1 {
			m.Log.Warn().Int64("from", seq+1).Int64("to", first-1).Msg("events are no longer in the journal: their messages are lost")
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
		if err := m.Post.Put(seq, state, list); err != nil {
			return false, err
		}
		m.stored = seq
	}
	m.seq, m.faults = seq, faults
	return more, nil
}

// Wake wakes the messenger if there may be a message about an event with its decisions.
// seq is the last event whose decisions have become durable. It never blocks.
func (m *Messenger) Wake(seq int64, ev model.Event, decisions []model.Decision) {
	if m == nil || !tells(ev, decisions) {
		return
	}
	m.decided.Store(seq)
	select {
	case m.letters <- struct{}{}:
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
func (m *Messenger) ofFaults(p verify.Step, ev model.Sampled, faults map[model.GPUID]string) (list []notify.Owned) {
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
func (m *Messenger) ofMissing(ctx context.Context, p verify.Step, faults map[model.GPUID]string) (list []notify.Owned) {
	var pages []model.GPU
	if m.Look(ctx, func(s *mapper.State) { pages = s.GPUs() }) != nil {
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
