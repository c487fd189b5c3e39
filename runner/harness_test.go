package runner

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"carma/containers"
	"carma/containers/containerstest"
	"carma/estimator"
	"carma/internal/units"
	"carma/mapper"
	"carma/mapper/model"
	"carma/runner/admission"
	"carma/runner/api"
	"carma/runner/clock"
	"carma/runner/gpu"
	"carma/runner/journal"
	"carma/runner/machine"
	"carma/runner/server"
	"carma/runner/tasklog"
	"carma/runner/verify"

	"github.com/rs/zerolog"
)

// cards is a gpu.Source with samples set by the test.
type cards struct {
	mu      sync.Mutex
	devices []gpu.Device
	samples map[string]gpu.Sample
	err     error
	owner   gpu.Owner
	notes   []string
	mended  bool // the driver reports a reset of all cards
}

func newCards(n int, capacity units.Bytes) *cards {
	c := &cards{samples: map[string]gpu.Sample{}}
	for i := range n {
		c.devices = append(c.devices, gpu.Device{UUID: "GPU-" + string(rune('a'+i)), Index: i, Model: "test", Capacity: capacity})
	}
	return c
}

func (c *cards) Name() string { return "cards" }
func (c *cards) Close() error { return nil }

func (c *cards) SetOwner(f gpu.Owner) { c.mu.Lock(); defer c.mu.Unlock(); c.owner = f }

func (c *cards) Notes() []string { return c.notes }

// Remember implements gpu.Remembering.
func (c *cards) Remember(_ context.Context, uuid, fault string, told bool) error {
	if !c.mended {
		c.set(gpu.Sample{UUID: uuid, Fault: fault, Lasts: true, Told: told})
	}
	return nil
}

// Forgive implements gpu.Remembering.
func (c *cards) Forgive(_ context.Context, uuid string) error {
	c.set(gpu.Sample{UUID: uuid})
	return nil
}

func (c *cards) GPUs(context.Context) ([]gpu.Device, error) { return c.devices, nil }

func (c *cards) Sample(context.Context) ([]gpu.Sample, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return nil, c.err
	}
	var out []gpu.Sample
	for _, d := range c.devices {
		s := c.samples[d.UUID]
		s.UUID = d.UUID
		s.Processes = slices.Clone(s.Processes)
		for i, p := range s.Processes {
			if task, attempt, ok := c.owner(p.PID); ok {
				s.Processes[i].Task, s.Processes[i].Attempt = task, attempt
			}
		}
		out = append(out, s)
	}
	return out, nil
}

func (c *cards) set(s gpu.Sample) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.samples[s.UUID] = s
}

// rig is a daemon on a fake engine. It can be stopped and started again on
// the same data folder, engine and GPUs.
type rig struct {
	t         *testing.T
	dir       string
	engine    *containerstest.Fake
	driver    containers.Driver // of the engine; nil means the engine itself
	cards     *cards
	opt       Options
	estimator admission.Estimator
	spare     int64                   // of the journal
	proc      string                  // folder of /proc; empty means /
	page      server.Page             // where the page is served
	source    func(*cards) gpu.Source // nil means the cards themselves
	log       io.Writer               // of the daemon's log; nil means the test's
	sys       string                  // folder with the host's /proc and /sys; empty means /

	*Runner
	api   *api.Client
	stop  func()
	ended chan struct{} // closed when the daemon has ended for any reason
}

const stepTimeout = 2 * time.Minute

// byMemory configures a policy that places tasks beside others at once, even if their activity
// is unknown.
func byMemory(g *rig) { g.opt.Mapper.Policy = "magm" }

func newRig(t *testing.T, change ...func(*rig)) *rig {
	t.Helper()
	g := &rig{
		t: t, dir: t.TempDir(), engine: containerstest.NewFake(), cards: newCards(2, 40*units.GiB),
		estimator: estimator.NewCatalogue([]estimator.Entry{{Name: "resnet50-bs64", Model: "resnet50", Batch: 64, GPUs: 1, Memory: 7 * units.GiB}}),
		opt: Options{
			Version: "test", Mapper: mapper.DefaultOptions(), Attach: containers.AttachSimulated,
			SampleEvery: 20 * time.Millisecond, Pull: "missing", StopGrace: 2 * time.Second, AllowedMounts: []string{"~"},
		},
	}
	g.opt.DataDir = g.dir
	// A policy that places at once: these tests are about the daemon's execution of
	// decisions. Policy carma first observes a task for a minute.
	o := mapper.DefaultsOf("magm")
	o.Learn, o.Shrink, o.Order, o.LearnMemory = g.opt.Mapper.Learn, g.opt.Mapper.Shrink, g.opt.Mapper.Order, g.opt.Mapper.LearnMemory
	g.opt.Mapper = o
	g.opt.Mapper.WarmUp, g.opt.Mapper.Backoff, g.opt.Mapper.SMACTCap = 0, 10*time.Millisecond, 0
	for _, f := range change {
		f(g)
	}
	t.Cleanup(func() {
		if g.stop != nil {
			g.stop()
		}
		g.within("its containers' programs to end", g.engine.Shutdown)
	})
	g.start()
	return g
}

// start runs a daemon; stop ends it and leaves the containers.
func (g *rig) start() {
	g.t.Helper()
	j, err := journal.OpenWith(g.dir, journal.Options{Spare: g.spare, Version: g.opt.Version, Readable: verify.Readable})
	if err != nil {
		g.t.Fatal(err)
	}
	logs := tasklog.Open(filepath.Join(g.dir, "logs"), 0)
	driver := g.driver
	if driver == nil {
		driver = g.engine
	}
	var source gpu.Source = g.cards
	if g.source != nil {
		source = g.source(g.cards)
	}
	log := zerolog.New(zerolog.NewTestWriter(g.t)).Level(zerolog.WarnLevel)
	if g.log != nil {
		log = zerolog.New(zerolog.SyncWriter(g.log))
	}
	g.Runner, err = New(g.ctx(), g.opt, Deps{
		Journal: j, Logs: logs, Driver: driver, GPUs: source, Clock: clock.New(1),
		Estimator: g.estimator, Log: log,
	})
	if err != nil {
		g.t.Fatal(err)
	}
	if g.proc != "" {
		g.Runner.owners.SetRoot(g.proc)
	}
	if g.sys != "" {
		g.Runner.hostMem = machine.NewMemory(g.sys)
		g.Runner.attemptDeps.Memory = g.Runner.hostMem
	}
	g.Runner.Server().SetPage(g.page)
	socket := filepath.Join(g.dir, "s")
	l, err := server.Listen(socket)
	if err != nil {
		g.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	r, ended := g.Runner, make(chan struct{})
	g.ended = ended
	all.Go(func() {
		defer close(ended)
		if err := r.RunAndServe(ctx, l); err != nil {
			g.t.Errorf("daemon: %v", err)
		}
	})
	g.api = api.NewClient(socket)
	g.stop = func() {
		g.stop = nil
		cancel()
		if !g.within("the daemon to end", all.Wait) {
			return
		}
		if err := j.Close(); err != nil && !errors.Is(err, journal.ErrFull) {
			g.t.Error(err)
		}
	}
}

// within reports whether f returns in time. After a failed test, its daemon or a program may
// wait forever; that must not delay the other tests until their time limit.
func (g *rig) within(what string, f func()) bool {
	g.t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
		return true
	case <-time.After(3 * stepTimeout):
		g.t.Errorf("gave up waiting for %s", what)
		return false
	}
}

func (g *rig) restart() {
	g.t.Helper()
	g.stop()
	g.start()
}

func (g *rig) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), stepTimeout)
	g.t.Cleanup(cancel)
	return ctx
}

// run submits a task and returns its reference.
func (g *rig) run(s api.Submit) string {
	g.t.Helper()
	sub, err := g.api.Submit(g.ctx(), s)
	if err != nil {
		g.t.Fatal(err)
	}
	return model.TaskID(sub.ID).String()
}

// until waits for a state of a task.
func (g *rig) until(ref, what string, ok func(api.Task) bool) api.Task {
	g.t.Helper()
	var last api.Task
	err := g.api.Watch(g.ctx(), ref, func(t api.Task) error {
		if last = t; ok(t) {
			return api.ErrStop
		}
		return nil
	})
	if err != nil || !ok(last) {
		g.t.Fatalf("task %s is not %s: %v; it is %s (%s), attempts %+v", ref, what, err, last.Phase, last.Reason, last.Attempts)
	}
	return last
}

func (g *rig) finished(ref string) api.Task {
	g.t.Helper()
	return g.until(ref, "finished", func(t api.Task) bool { return t.Finished() })
}

func (g *rig) running(ref string) api.Task {
	g.t.Helper()
	return g.until(ref, "running", func(t api.Task) bool { return t.Phase == "running" })
}

// output returns a task's output, all attempts, as stream:line.
func (g *rig) output(ref string) []string {
	g.t.Helper()
	var lines []string
	_, err := g.api.Logs(g.ctx(), ref, api.LogOptions{}, func(l api.LogLine) error {
		lines = append(lines, l.Stream+":"+l.Line)
		return nil
	})
	if err != nil {
		g.t.Fatal(err)
	}
	return lines
}

// script adds an image that runs f.
func (g *rig) script(ref string, f containerstest.Script) {
	g.engine.AddImage(ref, containerstest.Image{Run: f})
}

// printing returns a program that prints lines to stderr and exits.
func printing(code int, lines ...string) containerstest.Script {
	return func(_ context.Context, p *containerstest.Process) int {
		for _, l := range lines {
			io.WriteString(p.Stderr, l+"\n")
		}
		return code
	}
}

// untilStopped is a program that runs until it is asked to stop.
func untilStopped(ctx context.Context, _ *containerstest.Process) int {
	<-ctx.Done()
	return 143
}
