//go:build failpoints

package runner

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"carma/containers"
	"carma/containers/containerstest"
	"carma/estimator"
	"carma/internal/failpoint"
	"carma/internal/units"
	"carma/mapper"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/clock"
	"carma/runner/journal"
	"carma/runner/label"
	"carma/runner/request"
	"carma/runner/tasklog"
	"carma/runner/verify"

	"github.com/rs/zerolog"
)

var (
	histories = flag.Int("histories", 30, "how many random histories TestHistories plays")
	firstSeed = flag.Uint64("seed", 1, "seed of the first of them")
)

// TestHistories runs random histories in virtual time on the fake engine: tasks are submitted,
// end, fail, are stopped and removed, the engine fails, the daemon is killed at random
// failpoints and between them and starts with other options. No task is lost, no attempt is
// started twice, acknowledged requests are kept, and the ledger passes its audit.
func TestHistories(t *testing.T) {
	points, err := failpoint.Points("..")
	if err != nil {
		t.Fatal(err)
	}
	defer failpoint.Set(func(string, bool) error { return nil })
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // a seed reproduces nearly the same history
	deaths := 0
	for i := range *histories {
		seed := *firstSeed + uint64(i)
		ok := t.Run(fmt.Sprint(seed), func(t *testing.T) {
			dir, err := os.MkdirTemp(shm(), "histories")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = os.RemoveAll(dir) }()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, dir, seed, points)
				w.play()
				deaths += w.deaths
			})
		})
		if !ok {
			return
		}
	}
	t.Logf("%d histories with %d deaths", *histories, deaths)
}

// shm returns a folder in memory, where there is one.
func shm() string {
	if _, err := os.Stat("/dev/shm"); err == nil {
		return "/dev/shm"
	}
	return ""
}

// world is one history.
type world struct {
	t      *testing.T
	dir    string
	rnd    *rand.Rand
	points []failpoint.Point
	engine *containerstest.Fake
	cards  *cards

	mu      sync.Mutex
	starts  map[string]int                     // by container
	live    map[string]*containerstest.Process // by task
	acked   map[int64]string                   // submissions, with the task's image
	stopped map[int64]time.Time                // stops that were acknowledged
	ended   map[string]time.Time               // the last end of a program, by task
	removed map[int64]bool
	asked   map[int64]bool // to be removed

	// fault returns an error to inject at a point, beside the end of a life. Nil injects
	// none.
	fault func(point string) error
	// excuses reports whether a daemon may end with this error. Nil allows none.
	excuses func(error) bool

	life   *life
	deaths int
}

// life is one run of the daemon.
type life struct {
	*Runner
	journal *journal.Journal
	cancel  context.CancelFunc
	done    sync.WaitGroup
	dead    atomic.Bool
	point   string // the failpoint to die at
	nth     int
}

var errDead = fmt.Errorf("the daemon is dead: %w", containers.ErrUnavailable)

// die simulates kill -9: from now on the daemon writes nothing and calls no engine.
func (l *life) die() {
	l.dead.Store(true)
	l.cancel()
}

// at runs at each failpoint of this life.
func (l *life) at(name string, mayFail bool) error {
	if name == l.point && !l.dead.Load() {
		if l.nth--; l.nth <= 0 {
			l.die()
		}
	}
	if !l.dead.Load() {
		return nil
	}
	if !mayFail {
		runtime.Goexit()
	}
	return errDead
}

// mortal is a driver with calls that end with the daemon's life.
type mortal struct {
	*containerstest.Fake
	life *life
}

func (m mortal) Create(ctx context.Context, s containers.Spec) (string, error) {
	if m.life.dead.Load() {
		return "", errDead
	}
	return m.Fake.Create(ctx, s)
}

func (m mortal) SetMemory(ctx context.Context, id string, bytes int64) error {
	if m.life.dead.Load() {
		return errDead
	}
	return m.Fake.SetMemory(ctx, id, bytes)
}

func (m mortal) SetCPUs(ctx context.Context, id string, cpus float64, weight int64) error {
	if m.life.dead.Load() {
		return errDead
	}
	return m.Fake.SetCPUs(ctx, id, cpus, weight)
}

func (m mortal) Start(ctx context.Context, id string) error {
	if m.life.dead.Load() {
		return errDead
	}
	return m.Fake.Start(ctx, id)
}

func (m mortal) Remove(ctx context.Context, id string) error {
	if m.life.dead.Load() {
		return errDead
	}
	return m.Fake.Remove(ctx, id)
}

func (m mortal) Signal(ctx context.Context, id string) error {
	if m.life.dead.Load() {
		return errDead
	}
	return m.Fake.Signal(ctx, id)
}

func (m mortal) Kill(ctx context.Context, id string) error {
	if m.life.dead.Load() {
		return errDead
	}
	return m.Fake.Kill(ctx, id)
}

func newWorld(t *testing.T, dir string, seed uint64, points []failpoint.Point) *world {
	w := &world{
		t: t, dir: dir, rnd: rand.New(rand.NewPCG(seed, 12)), points: points,
		engine: containerstest.NewFake(), cards: newCards(2, 40*units.GiB),
		starts: map[string]int{}, live: map[string]*containerstest.Process{}, acked: map[int64]string{}, stopped: map[int64]time.Time{}, ended: map[string]time.Time{}, removed: map[int64]bool{}, asked: map[int64]bool{},
	}
	for image, run := range map[string]containerstest.Script{
		"short": func(ctx context.Context, p *containerstest.Process) int { return ends(ctx, p, 20*time.Second, 0) },
		"long":  func(ctx context.Context, p *containerstest.Process) int { return ends(ctx, p, 20*time.Minute, 0) },
		"bad":   func(ctx context.Context, p *containerstest.Process) int { return ends(ctx, p, 5*time.Second, 3) },
		"deaf": func(_ context.Context, p *containerstest.Process) int {
			return ends(context.Background(), p, 10*time.Minute, 0)
		},
	} {
		w.engine.AddImage(image, containerstest.Image{Run: func(ctx context.Context, p *containerstest.Process) int {
			defer w.begun(p)()
			return run(ctx, p)
		}})
	}
	return w
}

// ends is a program that exits after d.
func ends(ctx context.Context, p *containerstest.Process, d time.Duration, code int) int {
	p.Out("here")
	select {
	case <-time.After(d):
		return code
	case <-ctx.Done():
		return 143
	case <-p.Killed:
		return 137
	}
}

// begun records that a container's program runs.
func (w *world) begun(p *containerstest.Process) (ended func()) {
	task := p.Spec.Labels[label.Task]
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.starts[p.Spec.Name]++; w.starts[p.Spec.Name] > 1 {
		w.t.Errorf("container %s is started for the %d. time", p.Spec.Name, w.starts[p.Spec.Name])
	}
	if other := w.live[task]; other != nil {
		select {
		case <-other.Killed: // it has been killed, and its program returns in a moment
		default:
			w.t.Errorf("%s starts while %s runs", p.Spec.Name, other.Spec.Name)
		}
	}
	w.live[task] = p
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.ended[task] = time.Now()
		if w.live[task] == p {
			delete(w.live, task)
		}
	}
}

// start begins a life, with options of its own. The daemon may die while it
// starts.
func (w *world) start(point string, nth int) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	l := &life{cancel: cancel, point: point, nth: nth}
	w.life = l
	failpoint.Set(func(name string, mayFail bool) error {
		if err := l.at(name, mayFail); err != nil || !mayFail || w.fault == nil {
			return err
		}
		return w.fault(name)
	})
	opt := Options{
		Version: fmt.Sprint("test-", w.rnd.IntN(2)), DataDir: w.dir, Mapper: mapper.DefaultOptions(), Attach: containers.AttachSimulated,
		SampleEvery: time.Minute, Pull: "missing", StopGrace: 10 * time.Second,
	}
	opt.Mapper.Policy = []string{"first-fit", "best-fit", "magm", "round-robin"}[w.rnd.IntN(4)]
	opt.Mapper.WarmUp, opt.Mapper.Backoff = 0, time.Duration(1+w.rnd.IntN(60))*time.Second
	opt.Mapper.Headroom = units.Bytes(w.rnd.IntN(3)) * 512 * units.MiB
	opt.Mapper.Shrink = time.Duration(w.rnd.IntN(10)) * time.Minute
	born := make(chan struct{})
	l.done.Go(func() { // a life may end at a point in here
		defer close(born)
		var err error
		if l.journal, err = journal.Open(w.dir); err == nil {
			l.Runner, err = New(ctx, opt, Deps{
				Journal: l.journal, Logs: tasklog.Open(filepath.Join(w.dir, "logs"), 0), Driver: mortal{w.engine, l}, GPUs: w.cards,
				Clock: clock.New(1), Estimator: estimator.NewCatalogue(nil), Log: zerolog.Nop(),
			})
		}
		if err != nil && !l.dead.Load() {
			if w.excuses == nil || !w.excuses(err) {
				w.t.Errorf("start: %v\nsubmitted %v, stopped %v, removed %v", err, w.acked, w.stopped, w.removed)
			}
			l.die()
		}
	})
	<-born
	if l.Runner == nil {
		return
	}
	l.done.Go(func() {
		if err := l.Run(ctx); err != nil && !l.dead.Load() {
			if w.excuses == nil || !w.excuses(err) {
				w.t.Errorf("the daemon ended: %v", err)
			}
			l.die()
		}
	})
	synctest.Wait()
}

// end waits for the goroutines of a life and closes its files.
func (w *world) end() {
	l := w.life
	if l.dead.Load() {
		w.deaths++
	}
	l.cancel()
	l.done.Wait()
	if l.Runner != nil {
		l.endWork()
		l.running.Wait()
		l.loop.Wait()
	}
	synctest.Wait()
	if l.journal != nil {
		_ = l.journal.Close()
	}
}

// play runs the history.
func (w *world) play() {
	defer w.engine.Shutdown()
	for range 3 + w.rnd.IntN(4) {
		p := w.points[w.rnd.IntN(len(w.points))]
		w.start(p.Name, 1+w.rnd.IntN(12))
		for range 4 + w.rnd.IntN(12) {
			if w.life.dead.Load() {
				break
			}
			done := make(chan struct{}) // the daemon may also die at a failpoint while it handles a request
			go func() { defer close(done); w.act() }()
			<-done
		}
		if w.rnd.IntN(3) > 0 { // otherwise it stops normally
			w.life.die()
		}
		w.end()
	}
	w.engine.Up()
	w.start("", 0)
	w.check()
	w.end()
	w.start("", 0) // a container that could not be removed is removed at the next start
	time.Sleep(time.Minute)
	if list, err := w.engine.List(context.Background(), nil); err != nil || len(list) > 0 {
		w.t.Errorf("containers are left: %v %v", list, err)
	}
	w.end()
	if v, err := verify.Journal(w.dir, "test-0"); err != nil || len(v.Faults) > 0 {
		w.t.Errorf("the journal is not sound: %v %q", err, v.Faults)
	}
}

var root = request.Caller{Name: "root"}

// act performs one random action.
func (w *world) act() {
	l := w.life
	if l.Runner == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	switch w.rnd.IntN(12) {
	case 0, 1, 2, 3:
		image := []string{"short", "short", "long", "bad", "deaf"}[w.rnd.IntN(5)]
		made, err := l.admission.Submit(ctx, root, api.Submit{Image: image, Mem: int64(1+w.rnd.IntN(30)) << 30})
		if err == nil {
			w.acked[made.ID] = image
		}
	case 4:
		if id, ok := w.any(); ok {
			if _, err := l.control.Stop(ctx, root, model.TaskID(id).String(), api.StopRequest{}); err == nil && !l.dead.Load() {
				if w.stopped[id].IsZero() {
					w.stopped[id] = time.Now()
				}
			}
		}
	case 5:
		if id, ok := w.any(); ok {
			w.asked[id] = true
			if err := l.control.Remove(ctx, root, model.TaskID(id).String()); err == nil {
				w.removed[id] = true
			}
		}
	case 6:
		w.engine.FailNext([]containerstest.Op{containerstest.OpCreate, containerstest.OpStart, containerstest.OpWait, containerstest.OpKill, containerstest.OpRemove}[w.rnd.IntN(5)], errors.New("the engine fails"))
	case 7:
		w.engine.LoseNext([]containerstest.Op{containerstest.OpCreate, containerstest.OpStart, containerstest.OpRemove}[w.rnd.IntN(3)])
	case 8:
		w.engine.Down()
		time.Sleep(time.Duration(w.rnd.IntN(30)) * time.Second)
		w.engine.Up()
	default:
		time.Sleep(time.Duration(w.rnd.IntN(120)) * time.Second)
	}
}

// any returns a task that was acknowledged.
func (w *world) any() (id int64, ok bool) {
	if len(w.acked) == 0 {
		return 0, false
	}
	n := w.rnd.IntN(len(w.acked)) + 1
	for id := int64(1); ; id++ {
		if w.acked[id] != "" {
			if n--; n == 0 {
				return id, true
			}
		}
	}
}

// stopReaches is the time for which a program may continue after an acknowledged stop and still
// count as exited before the stop. It is the grace.
const stopReaches = 10 * time.Second

// check waits until all tasks have ended, and compares them with what was
// acknowledged.
func (w *world) check() {
	l := w.life
	if l.Runner == nil {
		return
	}
	for range 7 * 24 * 12 {
		open := 0
		if err := l.loop.Look(context.Background(), func(s *mapper.State) { open = s.Unfinished() }); err != nil {
			w.t.Errorf("look: %v", err)
			return
		}
		if open == 0 {
			break
		}
		time.Sleep(5 * time.Minute)
	}
	for id, image := range w.acked {
		rec, err := l.find.Find(model.TaskID(id).String())
		switch {
		case w.removed[id] && err == nil:
			w.t.Errorf("task %d was removed and is back", id)
		case w.removed[id], w.asked[id] && err != nil: // or the daemon died before it could answer
		case err != nil:
			w.t.Errorf("task %d (%s) was acknowledged and is lost: %v", id, image, err)
		case !rec.Task.Phase.Finished():
			w.t.Errorf("task %d (%s) has not ended after a week: %s %+v", id, image, rec.Task.Phase, rec.Task.Attempts)
		case !w.stopped[id].IsZero() && rec.Task.Phase != model.Cancelled:
			// The program may have exited before it received the stop.
			if ran := w.ended[fmt.Sprint(id)].Sub(w.stopped[id]); ran > stopReaches {
				w.t.Errorf("task %d (%s) was stopped, ran on for %s and has %s: %+v", id, image, ran, rec.Task.Phase, rec.Task.Attempts)
			}
		}
	}
}
