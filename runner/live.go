package runner

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"carma/runner/access"
	"carma/runner/api"
	"carma/runner/energy"
	"carma/runner/query"
	"carma/runner/record"
	"carma/runner/request"
	"carma/runner/rights"
	"carma/runner/sse"
)

const (
	// liveEvery is the wall-clock time between two snapshots of the state for the dashboard.
	liveEvery = time.Second
	// liveEnded is the number of ended tasks in a picture, liveStarts the number of pending
	// tasks with a forecast start.
	liveEnded, liveStarts = 20, 10
	// liveStartsCost is the ratio of pause to computing time of these forecasts. The
	// forecasts are repeated after liveStartsAge at the earliest.
	liveStartsCost, liveStartsAge = 50, 10 * time.Second
	// liveBeat is the number of pictures without a change after which an event is sent
	// anyway, so that a reader knows that the connection works.
	liveBeat = 15
)

// dashboardFeed makes one picture of the state a second while somebody looks. Viewers with equal
// rights get the same bytes.
type dashboardFeed struct {
	mu      sync.Mutex
	viewers int
	seq     int64
	now     *dashboardState // nil if none was made since the first viewer came
	before  *dashboardState // the picture before now, or nil
	events  map[view]views  // events made from now
	changed chan struct{}   // closed at the next picture
	cancel  func()          // ends the goroutines that make pictures
	stop    func()          // calls cancel and waits for them
	first   []int64         // the first tasks in the queue
	starts  map[int64]*api.Start
	most    int // largest number of unfinished tasks in a picture
}

// dashboardState is the state at one time, its parts as JSON.
type dashboardState struct {
	at    time.Time
	info  []byte
	gpus  []byte
	tasks map[int64]liveRow
	queue []int64
}

// liveRow is a task of a picture, with and without the data from its output.
type liveRow struct {
	owner         rights.Owner
	whole, public []byte
}

// sameAs reports whether two rows are equal for everybody.
func (t liveRow) sameAs(o liveRow) bool {
	return bytes.Equal(t.whole, o.whole) && bytes.Equal(t.public, o.public)
}

// as returns the row as a caller may see it.
func (t liveRow) as(v view) []byte {
	if v.policy.May(rights.Progress, v.who, t.owner) {
		return t.whole
	}
	return t.public
}

// view is the caller's rights in a picture. Viewers with equal views get equal bytes.
type view struct {
	policy rights.Policy
	who    rights.Caller
}

// views holds the events for viewers with equal rights: a whole picture, and the change
// from the previous picture. Each is nil until it is made.
type views struct{ whole, change []byte }

func newDashboardFeed() *dashboardFeed {
	return &dashboardFeed{changed: make(chan struct{}), most: liveMost}
}

// watchLive sends a whole picture, then each change. A viewer that is too slow for the
// changes gets a whole picture again.
func (r *Runner) watchLive(ctx context.Context, s *sse.Sender) error {
	if who, _ := request.CallerFrom(ctx); who.Subject != nil {
		return r.watchLiveAs(ctx, s)
	}
	r.enterLive()
	defer r.leaveLive()
	eyes := r.viewOf(ctx)
	var seen int64
	for {
		event, seq, changed := r.picturing.next(seen, eyes)
		if len(event) > 0 {
			if err := s.Write(event); err != nil {
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
func (r *Runner) viewOf(ctx context.Context) view {
	return view{r.authz.Policy(), r.authz.SubjectOf(ctx)}
}

// next returns the next event for a viewer who has seen a picture.
func (l *dashboardFeed) next(seen int64, eyes view) (event []byte, seq int64, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.now == nil:
		return nil, 0, l.changed // the first picture is sent whole
	case seen == l.seq:
	case seen > 0 && seen == l.seq-1 && l.before != nil:
		made := l.events[eyes]
		if made.change == nil {
			made.change = l.now.event(l.before, l.seq, eyes)
			l.events[eyes] = made
		}
		event = made.change
	default:
		made := l.events[eyes]
		if made.whole == nil {
			made.whole = l.now.event(nil, l.seq, eyes)
			l.events[eyes] = made
		}
		event = made.whole
	}
	return event, l.seq, l.changed
}

func (r *Runner) enterLive() {
	l := r.picturing
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.viewers++; l.viewers > 1 {
		return
	}
	ctx, cancel := context.WithCancel(r.work)
	var both sync.WaitGroup
	both.Go(func() { r.paint(ctx) })
	both.Go(func() { r.forecastStarts(ctx) })
	l.cancel, l.stop = cancel, both.Wait
}

func (r *Runner) leaveLive() {
	l := r.picturing
	l.mu.Lock()
	stop := func() {}
	if l.viewers--; l.viewers == 0 {
		l.cancel()
		stop = l.stop
		l.now, l.before, l.events = nil, nil, nil
	}
	l.mu.Unlock()
	stop()
}

// paint makes pictures until ctx ends.
func (r *Runner) paint(ctx context.Context) {
	still := 0
	for ctx.Err() == nil {
		if p, err := r.picture(ctx); err == nil && r.picturing.set(ctx, p, still >= liveBeat) {
			still = 0
		} else {
			still++
		}
		select {
		case <-ctx.Done():
		case <-time.After(liveEvery):
		}
	}
}

// set shows a picture, if it differs from the one before or must be shown.
func (l *dashboardFeed) set(ctx context.Context, p *dashboardState, must bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ctx.Err() != nil || l.viewers == 0 || l.now != nil && !must && p.same(l.now) {
		return false
	}
	l.seq++
	l.before, l.now, l.events = l.now, p, map[view]views{}
	close(l.changed)
	l.changed = make(chan struct{})
	return true
}

func (p *dashboardState) same(o *dashboardState) bool {
	if !bytes.Equal(p.info, o.info) || !bytes.Equal(p.gpus, o.gpus) || len(p.tasks) != len(o.tasks) || !slices.Equal(p.queue, o.queue) {
		return false
	}
	for id, t := range p.tasks {
		if !t.sameAs(o.tasks[id]) {
			return false
		}
	}
	return true
}

// event returns the change from a picture to p as a viewer may see it, or all of p
// without an earlier picture.
func (p *dashboardState) event(from *dashboardState, seq int64, eyes view) []byte {
	var b bytes.Buffer
	now, _ := p.at.MarshalJSON()
	fmt.Fprintf(&b, "event: live\ndata: {\"seq\":%d,\"now\":%s", seq, now)
	if from == nil {
		b.WriteString(`,"whole":true`)
		from = &dashboardState{}
	}
	if !bytes.Equal(p.info, from.info) {
		fmt.Fprintf(&b, `,"info":%s`, p.info)
	}
	if !bytes.Equal(p.gpus, from.gpus) {
		fmt.Fprintf(&b, `,"gpus":%s`, p.gpus)
	}
	var tasks [][]byte
	for _, id := range sortedKeys(p.tasks) {
		row := p.tasks[id].as(eyes)
		if old, there := from.tasks[id]; !there || !bytes.Equal(row, old.as(eyes)) {
			tasks = append(tasks, row)
		}
	}
	if len(tasks) > 0 {
		fmt.Fprintf(&b, `,"tasks":[%s]`, bytes.Join(tasks, []byte{','}))
	}
	var gone []int64
	for _, id := range sortedKeys(from.tasks) {
		if _, there := p.tasks[id]; !there {
			gone = append(gone, id)
		}
	}
	writeList(&b, "gone", gone)
	if !slices.Equal(p.queue, from.queue) {
		if writeList(&b, "queue", p.queue); len(p.queue) == 0 {
			b.WriteString(`,"emptied":true`)
		}
	}
	b.WriteString("}\n\n")
	return b.Bytes()
}

func writeList(b *bytes.Buffer, name string, list []int64) {
	if len(list) > 0 {
		text, _ := json.Marshal(list)
		fmt.Fprintf(b, `,"%s":%s`, name, text)
	}
}

func sortedKeys(m map[int64]liveRow) []int64 {
	keys := make([]int64, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// picture returns the present state with the tasks that the caller may know of, or with
// all tasks if there is no caller.
func (r *Runner) picture(ctx context.Context) (*dashboardState, error) {
	p := &dashboardState{at: r.Clock.Time(), tasks: map[int64]liveRow{}}
	gpus, err := r.overview.ListGPUs(ctx)
	if err != nil {
		return nil, err
	}
	for i := range gpus {
		g := &gpus[i] // figures of lower precision change less often
		g.EnergyJ, g.SMACT, g.SMOCC, g.DRAMA = 0, energy.Hundredths(g.SMACT), energy.Hundredths(g.SMOCC), energy.Hundredths(g.DRAMA)
		g.PowerW = float64(int(g.PowerW + 0.5))
	}
	if p.gpus, err = json.Marshal(gpus); err != nil {
		return nil, err
	}
	info, err := r.overview.LiveInfo(ctx)
	if err != nil {
		return nil, err
	}
	if info.LeftOut, err = r.pictureTasks(ctx, p); err != nil {
		return nil, err
	}
	p.info, err = json.Marshal(info)
	return p, err
}

// pictureTasks adds the tasks, and returns the number of unfinished tasks that do not
// fit.
func (r *Runner) pictureTasks(ctx context.Context, p *dashboardState) (left int, err error) {
	recs, left := r.liveRecords(r.picturing.most)
	recs = append(recs, r.records.LastDone(liveEnded)...)
	filter := r.authz.Filter(ctx)
	recs = slices.DeleteFunc(recs, func(rec *record.Record) bool { return !filter.Shows(rec) })
	if filter.Err() != nil {
		return left, filter.Err()
	}
	views, err := r.query.States(ctx, recs)
	if err != nil {
		return left, err
	}
	slices.SortFunc(recs, func(a, b *record.Record) int {
		return cmp.Or(cmp.Compare(views[a.ID()].Position, views[b.ID()].Position), cmp.Compare(a.ID(), b.ID()))
	})
	r.picturing.mu.Lock()
	starts := r.picturing.starts
	r.picturing.mu.Unlock()
	for _, rec := range recs {
		t := r.query.View(rec, views[rec.ID()]) // a row has no environment and no line of output
		if t.Position > 0 {
			p.queue = append(p.queue, t.ID)
		}
		if p.tasks[t.ID], err = liveRowOf(rec, &t, starts[t.ID]); err != nil {
			return left, err
		}
	}
	if !filter.All() {
		return left, nil // only viewers who see all tasks get forecast starts
	}
	r.picturing.mu.Lock()
	defer r.picturing.mu.Unlock()
	r.picturing.first = p.queue[:min(liveStarts, len(p.queue))]
	return left, nil
}

// liveRowOf makes the row of a task.
func liveRowOf(rec *record.Record, t *api.Task, start *api.Start) (row liveRow, err error) {
	marshal := func() ([]byte, error) {
		v := liveTask(t)
		v.Start = start
		return json.Marshal(v)
	}
	row.owner = access.OwnerOf(rec)
	if row.whole, err = marshal(); err != nil {
		return row, err
	}
	row.public = row.whole
	if t.Progress != nil && !row.owner.Open {
		t.Progress = query.WithoutOutput(t.Progress)
		row.public, err = marshal()
	}
	return row, err
}
