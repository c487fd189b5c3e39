package dashboard

import (
	"context"
	"sync"
	"time"

	"carma/runner/access"
	"carma/runner/api"
	"carma/runner/clock"
	"carma/runner/query"
	"carma/runner/record"
	"carma/runner/request"
)

const (
	// snapshotEvery is the wall-clock time between two snapshots of the state for the dashboard.
	snapshotEvery = time.Second
	// mostEnded is the number of ended tasks in a snapshot, mostStarts the number of pending
	// tasks with a forecast start.
	mostEnded, mostStarts = 20, 10
	// startsCost is the ratio of pause to computing time of these forecasts. The
	// forecasts are repeated after startsAge at the earliest.
	startsCost, startsAge = 50, 10 * time.Second
	// beat is the number of snapshots without a change after which an event is sent
	// anyway, so that a reader knows that the connection works.
	beat = 15
)

// Config has the parts that a Feed works with.
type Config struct {
	Tasks   *query.Tasks
	Server  *query.Server
	Records *record.Store
	Authz   *access.Authorizer
	Clock   *clock.Clock
	Work    context.Context // ends with the daemon
}

// Feed makes one snapshot of the state a second while somebody looks. Viewers with equal
// rights get the same bytes. Safe for concurrent use.
type Feed struct {
	c Config

	mu      sync.Mutex
	viewers int
	seq     int64
	now     *snapshot      // nil if none was made since the first viewer came
	before  *snapshot      // the snapshot before now, or nil
	events  map[view]views // events made from now
	changed chan struct{}  // closed at the next snapshot
	cancel  func()         // ends the goroutines that make snapshots
	stop    func()         // calls cancel and waits for them
	first   []int64        // the first tasks in the queue
	starts  map[int64]*api.Start
	most    int // largest number of unfinished tasks in a snapshot
}

// New returns a feed without viewers.
func New(c Config) *Feed { return &Feed{c: c, changed: make(chan struct{}), most: mostUnfinished} }

// SetMost bounds the number of unfinished tasks in the next snapshots, which is 2000 unless
// set.
func (f *Feed) SetMost(most int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.most = most
}

// Watch writes events to a viewer until ctx ends or write fails: a whole snapshot, then each
// change. A viewer that is too slow for the changes gets a whole snapshot again.
func (f *Feed) Watch(ctx context.Context, write func([]byte) error) error {
	if who, _ := request.CallerFrom(ctx); who.Subject != nil {
		return f.watchAs(ctx, write)
	}
	f.enter()
	defer f.leave()
	as := f.viewOf(ctx)
	var seen int64
	for {
		event, seq, changed := f.next(seen, as)
		if len(event) > 0 {
			if err := write(event); err != nil {
				return err
			}
		}
		seen = seq
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// viewOf returns the view of the caller of a request.
func (f *Feed) viewOf(ctx context.Context) view {
	return view{f.c.Authz.Policy(), f.c.Authz.SubjectOf(ctx)}
}

// next returns the next event for a viewer who has seen a snapshot.
func (f *Feed) next(seen int64, as view) (event []byte, seq int64, changed <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.now == nil:
		return nil, 0, f.changed // the first snapshot is sent whole
	case seen == f.seq:
	case seen > 0 && seen == f.seq-1 && f.before != nil:
		made := f.events[as]
		if made.change == nil {
			made.change = f.now.event(f.before, f.seq, as)
			f.events[as] = made
		}
		event = made.change
	default:
		made := f.events[as]
		if made.whole == nil {
			made.whole = f.now.event(nil, f.seq, as)
			f.events[as] = made
		}
		event = made.whole
	}
	return event, f.seq, f.changed
}

func (f *Feed) enter() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.viewers++; f.viewers > 1 {
		return
	}
	ctx, cancel := context.WithCancel(f.c.Work)
	var both sync.WaitGroup
	both.Go(func() { f.makeSnapshots(ctx) })
	both.Go(func() { f.forecastStarts(ctx) })
	f.cancel, f.stop = cancel, both.Wait
}

func (f *Feed) leave() {
	f.mu.Lock()
	stop := func() {}
	if f.viewers--; f.viewers == 0 {
		f.cancel()
		stop = f.stop
		f.now, f.before, f.events = nil, nil, nil
	}
	f.mu.Unlock()
	stop()
}

// makeSnapshots makes snapshots until ctx ends.
func (f *Feed) makeSnapshots(ctx context.Context) {
	still := 0
	for ctx.Err() == nil {
		if p, err := f.snapshot(ctx); err == nil && f.set(ctx, p, still >= beat) {
			still = 0
		} else {
			still++
		}
		select {
		case <-ctx.Done():
		case <-time.After(snapshotEvery):
		}
	}
}

// set shows a snapshot, if it differs from the one before or must be shown.
func (f *Feed) set(ctx context.Context, p *snapshot, must bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if ctx.Err() != nil || f.viewers == 0 || f.now != nil && !must && p.same(f.now) {
		return false
	}
	f.seq++
	f.before, f.now, f.events = f.now, p, map[view]views{}
	close(f.changed)
	f.changed = make(chan struct{})
	return true
}

// watchAs does what Watch does for a user of a cluster, with the tasks that the
// user may know of.
func (f *Feed) watchAs(ctx context.Context, write func([]byte) error) error {
	var seq int64
	var before *snapshot
	for still := 0; ; still++ {
		if p, err := f.snapshot(ctx); err != nil {
			return err
		} else if before == nil || still >= beat || !p.same(before) {
			seq, still = seq+1, 0
			if err := write(p.event(before, seq, f.viewOf(ctx))); err != nil {
				return err
			}
			before = p
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(snapshotEvery):
		}
	}
}
