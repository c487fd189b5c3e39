package notify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"carma/runner/api"
)

// queue contains the undelivered messages of one channel, and the results of sending. The
// Post's lock guards it.
type queue struct {
	waiting []item
	dropped int // number of dropped messages that the next letter reports
	given   int // number of messages given up since the daemon's start
	busy    bool
	tries   int       // consecutive failures
	next    time.Time // earliest time of the next try
	nudge   chan struct{}

	sent, failed time.Time
	err          string
	lost         []lost // messages given up last, the oldest first
}

type item struct {
	m  Message
	at time.Time
}

// again makes a worker that waits after a failure try at once.
func (q *queue) again() {
	if q.failed.IsZero() {
		return
	}
	q.tries, q.next = 0, time.Time{}
	select {
	case q.nudge <- struct{}{}:
	default:
	}
}

func (p *Post) queueOf(k key) *queue {
	q := p.queues[k]
	if q == nil {
		q = &queue{nudge: make(chan struct{}, 1)}
		p.queues[k] = q
	}
	return q
}

// enqueue adds a parcel to the queues of its channels.
func (p *Post) enqueue(x *parcel) {
	for _, k := range x.To {
		q := p.queueOf(k)
		if q.waiting = append(q.waiting, item{x.Message, x.At}); len(q.waiting) > most {
			p.giveUp(k, q, q.waiting[:len(q.waiting)-most], fmt.Sprintf("more than %d wait", most))
		}
		p.start(k, q)
	}
}

func (p *Post) start(k key, q *queue) {
	if p.work == nil || p.work.Err() != nil || q.busy || len(q.waiting) == 0 {
		return
	}
	q.busy = true
	p.all.Go(func() { p.deliver(k, q) })
}

// deliver sends the messages of a queue, and ends when the queue is empty.
func (p *Post) deliver(k key, q *queue) {
	for {
		if !p.rest(q) {
			p.mu.Lock()
			q.busy = false
			p.mu.Unlock()
			return
		}
		p.mu.Lock()
		p.dropOld(k, q)
		batch, dropped := slices.Clone(q.waiting), q.dropped
		c, by, err := p.channel(k)
		switch {
		case len(batch) == 0:
			q.busy = false
			p.mu.Unlock()
			return
		case c == nil: // the channel was removed
			p.giveUp(k, q, batch, "the channel was taken away")
			p.mu.Unlock()
			continue
		}
		p.mu.Unlock()
		if err == nil {
			err = p.send(p.work, c, by, batch, dropped)
		}
		p.outcome(k, q, c, batch, dropped, err)
	}
}

// rest waits until the channel may send. It returns false if the daemon ends.
func (p *Post) rest(q *queue) bool {
	for {
		p.mu.Lock()
		at := q.next
		if len(q.waiting) > 0 {
			if first := q.waiting[0].at.Add(p.opt.Pace.Collect); first.After(at) {
				at = first
			}
		}
		p.mu.Unlock()
		wait := min(time.Until(at), p.opt.Pace.Longest+time.Hour) // the clock may be set back
		if wait <= 0 {
			return p.work.Err() == nil
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-q.nudge:
		case <-p.work.Done():
			timer.Stop()
			return false
		}
		timer.Stop()
	}
}

func (p *Post) send(ctx context.Context, c *api.NotifyChannel, by sender, batch []item, dropped int) error {
	var messages []Message
	for _, x := range batch {
		messages = append(messages, x.m)
	}
	ctx, cancel := context.WithTimeout(ctx, p.opt.Pace.Limit)
	defer cancel()
	_, err := by.deliver(ctx, write(p.opt.Host, messages, c.Output == nil || *c.Output, dropped))
	return err
}

// outcome records the result of sending a letter.
func (p *Post) outcome(k key, q *queue, c *api.NotifyChannel, batch []item, dropped int, err error) {
	if err != nil && p.work.Err() != nil {
		return // the end of the daemon interrupted the sending
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if err == nil {
		q.sent, q.failed, q.err, q.tries, q.dropped = now, time.Time{}, "", 0, q.dropped-dropped
		q.next = now.Add(p.opt.Pace.Rest)
		p.opt.Count(c.Kind, "sent", len(batch))
		p.gone(k, q, batch)
		return
	}
	first := q.failed.IsZero()
	q.failed, q.err = now, err.Error()
	q.tries++
	var f *failure
	log := p.opt.Log.Warn()
	if !first {
		log = p.opt.Log.Debug()
	}
	if errors.As(err, &f) && f.final {
		q.next = now.Add(p.opt.Pace.Rest)
		log.Int("uid", k.UID).Str("channel", k.Name).Str("kind", c.Kind).Int("messages", len(batch)).Str("reason", err.Error()).Msg("messages could not be sent and are given up")
		p.giveUp(k, q, batch, err.Error())
		q.dropped = 0 // carma notify shows it to the owner
		return
	}
	wait := p.backoff(q.tries)
	if f != nil {
		wait = max(wait, f.after)
	}
	q.next = now.Add(wait)
	p.opt.Count(c.Kind, "retried", len(batch))
	log.Int("uid", k.UID).Str("channel", k.Name).Str("kind", c.Kind).Int("messages", len(batch)).Stringer("again_in", wait).Str("reason", err.Error()).Msg("messages could not be sent; they are tried again")
}

// backoff doubles the wait with each consecutive failure.
func (p *Post) backoff(tries int) time.Duration {
	d := p.opt.Pace.Retry
	for range min(tries-1, 30) {
		if d *= 2; d >= p.opt.Pace.Longest {
			return p.opt.Pace.Longest
		}
	}
	return d
}

// dropOld gives up messages that have waited too long.
func (p *Post) dropOld(k key, q *queue) {
	old := 0
	for old < len(q.waiting) && time.Since(q.waiting[old].at) > giveUp {
		old++
	}
	if old > 0 {
		p.opt.Log.Warn().Int("uid", k.UID).Str("channel", k.Name).Int("messages", old).Msg("messages are given up: they could not be sent for a day")
		p.giveUp(k, q, q.waiting[:old], cmp.Or(q.err, "it could not be sent")+", for a day")
	}
}

// giveUp removes unsent messages from a queue.
func (p *Post) giveUp(k key, q *queue, list []item, why string) {
	kind := "gone"
	if c, _, _ := p.channel(k); c != nil {
		kind = c.Kind
	}
	q.remember(list, why)
	q.given += len(list)
	q.dropped += len(list)
	p.opt.Count(kind, "dropped", len(list))
	p.gone(k, q, slices.Clone(list))
}

// gone removes messages from a queue, and marks them as not to be sent again.
func (p *Post) gone(k key, q *queue, list []item) {
	d, is := delivered{To: k}, map[string]bool{}
	for _, x := range list {
		d.IDs, is[x.m.ID] = append(d.IDs, x.m.ID), true
	}
	q.waiting = slices.DeleteFunc(q.waiting, func(x item) bool { return is[x.m.ID] })
	if err := p.box.delivered(d); err != nil {
		p.opt.Log.Warn().Err(err).Msg("a delivery could not be noted; after a restart the messages are sent again")
	}
	if p.box.done >= maxDone {
		if err := p.box.rewrite(p.parcels()); err != nil {
			p.opt.Log.Warn().Err(err).Msg("the outbox could not be written anew")
		}
	}
}

// parcels returns the messages that wait in all queues.
func (p *Post) parcels() (all []parcel) {
	for k, q := range p.queues {
		for _, x := range q.waiting {
			all = append(all, parcel{Message: x.m, At: x.at, To: []key{k}})
		}
	}
	slices.SortStableFunc(all, func(a, b parcel) int { return a.At.Compare(b.At) })
	return all
}
