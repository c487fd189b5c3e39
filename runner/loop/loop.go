package loop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"carma/internal/failpoint"
	"carma/internal/units"
	"carma/mapper"
	"carma/mapper/model"
	"carma/runner/clock"
	"carma/runner/journal"
	"carma/runner/record"
	"carma/runner/request"

	"github.com/rs/zerolog"
)

// ErrFull is the answer to submitters while the journal has no room.
var ErrFull = &request.Error{Status: 507, Text: "the journal's disk is full: nothing can be accepted until there is room; running tasks go on"}

const (
	maxBatch      = 256
	retryFull     = 500 * time.Millisecond
	retryRoom     = 2 * time.Second
	flushAfter    = 200 * time.Millisecond
	snapshotEvery = 10_000 // events
)

// Hooks does the work of the daemon around the scheduler. The loop's goroutine calls its methods,
// which therefore must not wait for the loop.
type Hooks interface {
	// BeginBatch is called before the changes of a batch are asked for their events.
	BeginBatch()
	// Archive returns what is kept of tasks that are being removed, for the commit that
	// deletes their records.
	Archive(removed []model.TaskID) []journal.MetaRow
	// CarryOut carries out the decisions on an event. All of them are durable.
	CarryOut(ev model.Event, decisions []model.Decision)
	// EndBatch is called after a batch with events was applied, with the records of its
	// new and changed tasks.
	EndBatch(changed []*record.Record)
	// Ended returns nil, or a channel after whose close the loop ends.
	Ended() <-chan struct{}
}

// Loop owns the scheduler's state. Only its own goroutine uses the fields of the second group.
type Loop struct {
	journal *journal.Journal
	records *record.Store
	clock   *clock.Clock
	log     zerolog.Logger
	options model.Options
	hooks   Hooks
	work    context.Context // ends when the daemon stops
	inbox   chan *Change
	queries chan func()
	// busy is the begin of the loop's round in Unix nanoseconds, or 0 while the loop waits.
	// unwritable is set if the journal refused the last commit, tight while the journal
	// uses its spare room, stopping when requests are cut off.
	busy       atomic.Int64
	unwritable atomic.Bool
	tight      atomic.Bool
	stopping   atomic.Bool

	state     *mapper.State
	seq       int64           // of the last event applied
	pending   journal.Batch   // decisions and records for the next commit
	due       []committedStep // steps to carry out after that commit
	sinceSnap int
	snapping  sync.WaitGroup
	full      bool // the journal refused the last commit
}

// New returns a loop without a state; [Loop.Load] rebuilds it. work ends when the daemon stops.
func New(work context.Context, j *journal.Journal, records *record.Store, c *clock.Clock, log zerolog.Logger, options model.Options, hooks Hooks) *Loop {
	return &Loop{
		journal: j, records: records, clock: c, log: log, options: options, hooks: hooks, work: work,
		inbox: make(chan *Change, 1024), queries: make(chan func()),
	}
}

// State returns the scheduler's state. Only the loop's goroutine may use it: changes, hooks,
// and the daemon's start before [Loop.Run].
func (l *Loop) State() *mapper.State { return l.state }

// Seq returns the number of the last event applied. Only the loop's goroutine may call it.
func (l *Loop) Seq() int64 { return l.seq }

// BeginStop records that the daemon, not their clients, cancels requests from now on.
func (l *Loop) BeginStop() { l.stopping.Store(true) }

// Stopping reports whether [Loop.BeginStop] was called.
func (l *Loop) Stopping() bool { return l.stopping.Load() }

// Run applies changes until ctx ends or the channel of [Hooks.Ended] is closed. kept are changes made before
// for which the disk had no room; they are tried again.
func (l *Loop) Run(ctx context.Context, kept []*Change) error {
	wake, flush := time.NewTimer(time.Hour), time.NewTimer(time.Hour)
	defer wake.Stop()
	defer flush.Stop()
	flushing := false // neither queries nor events may delay the next flush
	for {
		ended := l.hooks.Ended()
		l.busy.Store(0)
		wake.Reset(l.untilWake())
		if l.unstored() && !flushing {
			flush.Reset(flushAfter)
			flushing = true
		}
		var retry <-chan time.Time
		if len(kept) > 0 {
			retry = time.After(retryFull)
		}
		var room <-chan time.Time
		if l.tight.Load() {
			room = time.After(retryRoom)
		}
		batch := kept
		select {
		case <-ctx.Done():
			return nil
		case <-ended:
			return nil
		case query := <-l.queries:
			l.busy.Store(time.Now().UnixNano())
			query()
			continue
		case <-room:
			l.deferForDisk(nil)
			continue
		case c := <-l.inbox:
			batch = append(batch, c)
		case <-wake.C:
			batch = append(batch, Fact(model.TimerFired{At: l.clock.Now()}))
		case <-flush.C:
			flushing = false
			if err := l.Flush(); err != nil {
				return err
			}
			continue
		case <-retry:
		}
		l.busy.Store(time.Now().UnixNano())
		batch = l.drain(batch)
		var err error
		if kept, err = l.Apply(batch); err != nil {
			return err
		}
		l.maybeSnapshot()
	}
}

// Wait waits until no snapshot is being stored beside the loop. Call it after [Loop.Run].
func (l *Loop) Wait() { l.snapping.Wait() }

// Close stores what is pending, and a snapshot. Call it after [Loop.Run].
func (l *Loop) Close() error {
	l.Wait()
	err := l.store()
	if snapErr := l.snapshotNow(); errors.Is(snapErr, journal.ErrFull) {
		l.log.Warn().Err(snapErr).Msg("no snapshot could be stored; the next start will take longer")
	} else if err == nil {
		err = snapErr
	}
	return err
}

// drain adds the waiting changes, up to one batch.
func (l *Loop) drain(batch []*Change) []*Change {
	for len(batch) < maxBatch {
		select {
		case c := <-l.inbox:
			batch = append(batch, c)
		default:
			return batch
		}
	}
	return batch
}

func (l *Loop) untilWake() time.Duration {
	at, ok := l.state.NextTimer()
	if !ok || l.full {
		return time.Hour
	}
	return min(l.clock.Until(at), time.Hour)
}

// round is the result of one batch of changes.
type round struct {
	accepted []*Change
	events   []model.Event
	records  []*record.Record // of new and changed tasks; they hold more than the mapper does
	store    journal.Batch
}

// gather asks the changes of a batch for their events. A change that refuses is
// answered at once.
func (l *Loop) gather(batch []*Change, now units.Instant) (*round, error) {
	l.hooks.BeginBatch()
	g := &round{store: l.pending}
	for _, c := range batch {
		events, recs, err := c.Events(now)
		if err != nil {
			c.answer(err)
			continue
		}
		for _, rec := range recs {
			g.store.Tasks = append(g.store.Tasks, rec.Row())
			g.records = append(g.records, rec)
		}
		g.accepted = append(g.accepted, c)
		g.events = append(g.events, events...)
	}
	var removed []model.TaskID
	for _, ev := range g.events {
		kind, body, err := model.EncodeEvent(ev)
		if err != nil {
			return nil, fmt.Errorf("event %s: %w", kind, err)
		}
		if ev, ok := ev.(model.Removed); ok {
			for _, id := range ev.Tasks {
				if !slices.Contains(removed, id) {
					removed = append(removed, id)
				}
				g.store.Removed = append(g.store.Removed, int64(id))
			}
		}
		g.store.Events = append(g.store.Events, journal.Event{At: int64(model.EventTime(ev)), Kind: kind, Body: body})
	}
	if len(removed) > 0 {
		g.store.Meta = l.hooks.Archive(removed)
	}
	return g, nil
}

// Apply journals and applies a batch of changes, before [Loop.Run] or in the loop. Before a
// change that depends on the results of earlier ones it begins a new part. It returns the
// changes to try again because the disk is full; any other error of the journal ends the daemon.
func (l *Loop) Apply(batch []*Change) (kept []*Change, err error) {
	for len(batch) > 0 {
		n := 1
		for n < len(batch) && !batch[n].Fresh {
			n++
		}
		again, err := l.applyPart(batch[:n])
		if err != nil {
			return nil, err
		}
		kept, batch = append(kept, again...), batch[n:]
	}
	return kept, nil
}

// applyPart journals a part of a batch in one transaction and applies it. It
// stores the decisions in another, and only then carries them out.
func (l *Loop) applyPart(batch []*Change) (kept []*Change, err error) {
	batch = l.deferForDisk(batch)
	g, err := l.gather(batch, l.clock.Now())
	if err != nil {
		return nil, err
	}
	if len(g.events) > 0 {
		first, err := l.journal.Commit(g.store)
		if l.releaseReserve(err) {
			return l.applyPart(g.accepted) // try again with the vital changes only
		}
		if err != nil {
			return l.refuse(g.accepted, err)
		}
		failpoint.Hit("events-stored")
		l.stored()
		for _, rec := range g.records {
			l.records.Put(rec)
		}
		for i, ev := range g.events {
			l.decided(first+int64(i), ev, l.state.Step(ev))
		}
		if err := l.flushDue(); err != nil {
			return nil, err
		}
		l.sinceSnap += len(g.events)
		l.hooks.EndBatch(g.records)
	}
	for _, c := range g.accepted {
		c.answer(nil)
	}
	return nil, nil
}

func (c *Change) answer(err error) {
	if c.done != nil {
		c.done <- err
	}
}

// refuse answers the changes of a batch that could not be journaled. It returns the changes
// to try again. If the disk is not full, the error ends the daemon.
func (l *Loop) refuse(batch []*Change, err error) (kept []*Change, fatal error) {
	if !errors.Is(err, journal.ErrFull) {
		return nil, fmt.Errorf("journal: %w", err)
	}
	l.isFull(err)
	for _, c := range batch {
		if c.Keep {
			kept = append(kept, c)
		} else {
			c.answer(ErrFull)
		}
	}
	return kept, nil
}
