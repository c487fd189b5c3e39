package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"carma/internal/failpoint"
	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/journal"
	"carma/runner/record"
	"carma/runner/request"
)

// errFull is the answer to submitters while the journal has no room.
var errFull = &request.Error{Status: 507, Text: "the journal's disk is full: nothing can be accepted until there is room; running tasks go on"}

const (
	maxBatch      = 256
	retryFull     = 500 * time.Millisecond
	retryRoom     = 2 * time.Second
	flushAfter    = 200 * time.Millisecond
	snapshotEvery = 10_000 // events
)

// loop owns the state until ctx ends.
func (r *Runner) loop(ctx context.Context) error {
	kept := r.early
	wake, flush := time.NewTimer(time.Hour), time.NewTimer(time.Hour)
	defer wake.Stop()
	defer flush.Stop()
	var tailed <-chan struct{}
	flushing := false // neither queries nor events may delay the next flush
	for {
		if tailed == nil && r.drained() {
			tailed = waitAtMost(&r.attempts, drainTail)
		}
		r.busy.Store(0)
		wake.Reset(r.untilWake())
		if r.unstored() && !flushing {
			flush.Reset(flushAfter)
			flushing = true
		}
		var retry <-chan time.Time
		if len(kept) > 0 {
			retry = time.After(retryFull)
		}
		var room <-chan time.Time
		if r.tight.Load() {
			room = time.After(retryRoom)
		}
		batch := kept
		select {
		case <-ctx.Done():
			return nil
		case <-tailed:
			return nil
		case query := <-r.queries:
			r.busy.Store(time.Now().UnixNano())
			query()
			continue
		case <-room:
			r.deferForDisk(nil)
			continue
		case c := <-r.inbox:
			batch = append(batch, c)
		case <-wake.C:
			batch = append(batch, fact(model.TimerFired{At: r.Clock.Now()}))
		case <-flush.C:
			flushing = false
			if err := r.flush(); err != nil {
				return err
			}
			continue
		case <-retry:
		}
		r.busy.Store(time.Now().UnixNano())
		batch = r.drain(batch)
		var err error
		if kept, err = r.apply(batch); err != nil {
			return err
		}
		r.maybeSnapshot()
	}
}

// drain adds the waiting changes, up to one batch.
func (r *Runner) drain(batch []*change) []*change {
	for len(batch) < maxBatch {
		select {
		case c := <-r.inbox:
			batch = append(batch, c)
		default:
			return batch
		}
	}
	return batch
}

func (r *Runner) untilWake() time.Duration {
	at, ok := r.state.NextTimer()
	if !ok || r.full {
		return time.Hour
	}
	return min(r.Clock.Until(at), time.Hour)
}

// round is the result of one batch of changes.
type round struct {
	accepted []*change
	events   []model.Event
	records  []*record.Record // of new and changed tasks; they hold more than the mapper does
	store    journal.Batch
}

// gather asks the changes of a batch for their events. A change that refuses is
// answered at once.
func (r *Runner) gather(batch []*change, now units.Instant) (*round, error) {
	clear(r.names)
	g := &round{store: r.pending}
	for _, c := range batch {
		events, recs, err := c.events(now)
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
	past := usageArchive{r: r}
	for _, ev := range g.events {
		kind, body, err := model.EncodeEvent(ev)
		if err != nil {
			return nil, fmt.Errorf("event %s: %w", kind, err)
		}
		if ev, ok := ev.(model.Removed); ok {
			for _, id := range ev.Tasks {
				if !slices.Contains(g.store.Removed, int64(id)) {
					past.forget(id)
				}
				g.store.Removed = append(g.store.Removed, int64(id))
			}
		}
		g.store.Events = append(g.store.Events, journal.Event{At: int64(model.EventTime(ev)), Kind: kind, Body: body})
	}
	g.store.Meta = past.meta()
	return g, nil
}

// apply journals and applies a batch. Before a change that depends on the results
// of earlier ones it begins a new part. It returns the changes to try again
// because the disk is full; any other error of the journal ends the daemon.
func (r *Runner) apply(batch []*change) (kept []*change, err error) {
	for len(batch) > 0 {
		n := 1
		for n < len(batch) && !batch[n].fresh {
			n++
		}
		again, err := r.applyPart(batch[:n])
		if err != nil {
			return nil, err
		}
		kept, batch = append(kept, again...), batch[n:]
	}
	return kept, nil
}

// applyPart journals a part of a batch in one transaction and applies it. It
// stores the decisions in another, and only then carries them out.
func (r *Runner) applyPart(batch []*change) (kept []*change, err error) {
	batch = r.deferForDisk(batch)
	g, err := r.gather(batch, r.Clock.Now())
	if err != nil {
		return nil, err
	}
	if len(g.events) > 0 {
		first, err := r.Journal.Commit(g.store)
		if r.releaseReserve(err) {
			return r.applyPart(g.accepted) // try again with the vital changes only
		}
		if err != nil {
			return r.refuse(g.accepted, err)
		}
		failpoint.Hit("events-stored")
		r.stored()
		for _, rec := range g.records {
			r.records.Put(rec)
		}
		for i, ev := range g.events {
			r.decided(first+int64(i), ev, r.state.Step(ev))
		}
		if err := r.flushDue(); err != nil {
			return nil, err
		}
		for _, rec := range g.records {
			r.probeIfDue(rec)
		}
		r.sinceSnap += len(g.events)
		r.logProblems()
		r.startCanaryIfDue()
	}
	for _, c := range g.accepted {
		c.answer(nil)
	}
	return nil, nil
}

func (c *change) answer(err error) {
	if c.done != nil {
		c.done <- err
	}
}

// refuse answers the changes of a batch that could not be journaled. It returns the changes
// to try again. If the disk is not full, the error ends the daemon.
func (r *Runner) refuse(batch []*change, err error) (kept []*change, fatal error) {
	if !errors.Is(err, journal.ErrFull) {
		return nil, fmt.Errorf("journal: %w", err)
	}
	r.isFull(err)
	for _, c := range batch {
		if c.keep {
			kept = append(kept, c)
		} else {
			c.answer(errFull)
		}
	}
	return kept, nil
}
