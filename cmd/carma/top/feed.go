package top

import (
	"context"
	"math"
	"strconv"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"carma/runner/api"
)

// feed sends changes to the view. One goroutine reads the GPUs and the tasks on them every
// interval. It reads the whole queue, which may be long, after an event about a change. It
// also reads the queue from time to time without an event, because reasons change without
// events. A second goroutine reads the events. A third requests the expected starts of the
// waiting tasks on the screen, one after the other.
type feed struct {
	d        daemon
	interval time.Duration
	send     func(tea.Msg)
	soon     chan struct{} // request the state now
	queue    chan struct{} // the queue has changed

	mu   sync.Mutex
	want []int64 // waiting tasks on the screen
}

const (
	// wholeLeast and wholeMost are the times between two requests for all tasks, after a
	// change of the queue and without a change.
	wholeLeast, wholeMost = 4 * time.Second, 15 * time.Second
	// eventsBundled is the time for which events are collected, because a sweep causes
	// hundreds at once.
	eventsBundled = 200 * time.Millisecond
	// retried is the pause before the next request to a daemon that does not answer.
	retried = time.Second
	// startPause is the pause between two requests for an expected start, because the
	// daemon simulates its queue for each. startAge is the largest age of an answer.
	startPause, startAge = 500 * time.Millisecond, 15 * time.Second
)

func newFeed(d daemon, interval time.Duration, send func(tea.Msg)) *feed {
	return &feed{d: d, interval: interval, send: send, soon: make(chan struct{}, 1), queue: make(chan struct{}, 1)}
}

// run feeds until ctx ends.
func (f *feed) run(ctx context.Context) {
	var all sync.WaitGroup
	all.Go(func() { f.looks(ctx) })
	all.Go(func() { f.events(ctx) })
	all.Go(func() { f.expects(ctx) })
	all.Wait()
}

// now makes the feed request the state at once.
func (f *feed) now() {
	nudge(f.queue)
	nudge(f.soon)
}

func nudge(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (f *feed) looks(ctx context.Context) {
	var whole time.Time
	stale := true
	for {
		select {
		case <-f.queue:
			stale = true
		default:
		}
		age := time.Since(whole)
		all := stale && age >= min(wholeLeast, 2*f.interval) || age >= wholeMost
		pause := f.interval
		if err := f.look(ctx, all); err != nil {
			f.send(lost{err})
			stale, pause, whole = true, retried, time.Time{}
		} else if all {
			stale, whole = false, time.Now()
		}
		select {
		case <-ctx.Done():
			return
		case <-f.soon:
			stale, whole = true, time.Time{}
		case <-time.After(pause):
		}
	}
}

// placed lists the phases in which the progress and the use of GPUs change without an
// event.
const placed = "launching,running,suspending,suspended,resuming,stopping"

// look requests the whole state, or the state without the queue.
func (f *feed) look(ctx context.Context, whole bool) (err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s := snapshot{whole: whole}
	if s.info, err = f.d.Info(ctx); err != nil {
		return err
	}
	if s.gpus, err = f.d.GPUs(ctx); err != nil {
		return err
	}
	o := api.ListOptions{Phase: placed}
	if whole {
		o.Phase = ""
	}
	if s.tasks, err = f.d.Tasks(ctx, o); err != nil {
		return err
	}
	f.send(s)
	return nil
}

// events reads the stream of events, and reconnects when the stream ends.
func (f *feed) events(ctx context.Context) {
	for ctx.Err() == nil {
		tasks := make(chan api.Task, 64)
		var reading sync.WaitGroup
		reading.Go(func() {
			defer close(tasks)
			_ = f.d.WatchAll(ctx, func(t api.Task) error {
				select {
				case tasks <- t:
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			}) // errors are reported by look
		})
		f.bundles(tasks)
		reading.Wait()
		select {
		case <-ctx.Done():
		case <-time.After(retried):
			nudge(f.queue) // events between the two streams are unknown
		}
	}
}

func (f *feed) bundles(tasks chan api.Task) {
	for t := range tasks {
		some, _ := bundle(tasks, t, eventsBundled, math.MaxInt)
		f.send(changed(some))
		nudge(f.queue)
	}
}

// bundle returns first and the values that the channel delivers within a time, up to a
// largest number, and false if the channel was closed.
func bundle[T any](from <-chan T, first T, within time.Duration, most int) (list []T, open bool) {
	list = []T{first}
	for over := time.After(within); len(list) < most; {
		select {
		case next, open := <-from:
			if !open {
				return list, false
			}
			list = append(list, next)
		case <-over:
			return list, true
		}
	}
	return list, true
}

// ask sends the feed the list of waiting tasks on the screen.
func (m *app) ask() {
	if m.feed == nil {
		return
	}
	m.feed.mu.Lock()
	defer m.feed.mu.Unlock()
	m.feed.want = ids(m.window(waiting))
}

// expects requests the expected starts of the tasks on the screen.
func (f *feed) expects(ctx context.Context) {
	asked := map[int64]time.Time{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(startPause):
		}
		id := f.oldest(asked)
		if id == 0 {
			continue
		}
		if len(asked) > 1000 {
			asked = map[int64]time.Time{}
		}
		asked[id] = time.Now()
		if why, err := f.d.Why(ctx, strconv.FormatInt(id, 10)); err == nil {
			f.send(start{id, why.Start})
		}
	}
}

// oldest returns the task on the screen whose answer is oldest, or 0 if none is due.
func (f *feed) oldest(asked map[int64]time.Time) (id int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, w := range f.want {
		if at := asked[w]; time.Since(at) > startAge && (id == 0 || at.Before(asked[id])) {
			id = w
		}
	}
	return id
}
