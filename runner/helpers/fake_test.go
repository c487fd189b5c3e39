package helpers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"carma/containers"
	"carma/runner/api"
	"carma/runner/pull"
)

// engine is a driver that keeps containers, networks and volumes as names.
type engine struct {
	containers.Driver // other methods are not called
	mu                sync.Mutex
	made              map[string]*container
	networks, volumes map[string]map[string]string // labels by name
	did               []string                     // requests, in order
	missing           map[string]bool              // images that cannot be had
	refuse            error                        // of Start
}

type container struct {
	spec containers.Spec
	look containers.Look
}

func newEngine() *engine {
	return &engine{made: map[string]*container{}, networks: map[string]map[string]string{}, volumes: map[string]map[string]string{}, missing: map[string]bool{}}
}

func (e *engine) note(format string, args ...any) {
	e.did = append(e.did, fmt.Sprintf(format, args...))
}

func has(have, want map[string]string) bool {
	for k, v := range want {
		if have[k] != v {
			return false
		}
	}
	return true
}

func (e *engine) List(_ context.Context, labels map[string]string) (list []containers.Container, _ error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(e.made)) {
		if c := e.made[name]; has(c.spec.AllLabels(), labels) {
			list = append(list, containers.Container{ID: name, Name: name, State: c.look.State, Labels: c.spec.AllLabels()})
		}
	}
	return list, nil
}

func (e *engine) Create(_ context.Context, s containers.Spec) (string, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.made[s.Name] != nil {
		return s.Name, nil
	}
	if e.missing[s.Image] {
		return "", containers.ErrNotFound
	}
	for _, n := range s.Hosted.Networks {
		if e.networks[n.Network] == nil {
			return "", errors.New("no network " + n.Network)
		}
	}
	e.note("create %s", s.Identity[LabelHelper])
	e.made[s.Name] = &container{spec: s, look: containers.Look{State: containers.StateCreated}}
	return s.Name, nil
}

func (e *engine) Image(_ context.Context, ref string) (containers.Image, error) {
	return containers.Image{}, fmt.Errorf("%s: %w", ref, containers.ErrNotFound)
}

func (e *engine) Pull(_ context.Context, ref string, _ containers.Credential) error {
	return errors.New("no registry has " + ref)
}

func (e *engine) Start(_ context.Context, id string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	c := e.made[id]
	if e.refuse != nil {
		return e.refuse
	}
	if c.look.State != containers.StateCreated {
		return nil
	}
	e.note("start %s", c.spec.Identity[LabelHelper])
	c.look.State = containers.StateRunning
	if c.spec.Hosted.Health != nil {
		c.look.Health = containers.HealthStarting
	}
	return nil
}

func (e *engine) Remove(_ context.Context, id string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if c := e.made[id]; c != nil {
		e.note("remove %s", c.spec.Identity[LabelHelper])
	}
	delete(e.made, id)
	return nil
}

func (e *engine) CanHost() error { return nil }

func (e *engine) MakeNetwork(_ context.Context, n containers.Network) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.networks[n.Name] = n.Labels
	return nil
}

func (e *engine) MakeVolume(_ context.Context, v containers.Volume) (string, bool, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	_, there := e.volumes[v.Name]
	e.volumes[v.Name] = v.Labels
	return "/nonexistent/" + v.Name, !there, nil
}

func (e *engine) RemoveNetwork(_ context.Context, name string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.networks, name)
	return nil
}

func (e *engine) RemoveVolume(_ context.Context, name string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.volumes, name)
	return nil
}

func names(of map[string]map[string]string, labels map[string]string) (list []string) {
	for _, name := range slices.Sorted(maps.Keys(of)) {
		if has(of[name], labels) {
			list = append(list, name)
		}
	}
	return list
}

func (e *engine) Networks(_ context.Context, labels map[string]string) ([]string, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return names(e.networks, labels), nil
}

func (e *engine) Volumes(_ context.Context, labels map[string]string) ([]string, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return names(e.volumes, labels), nil
}

func (e *engine) Look(_ context.Context, id string) (containers.Look, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if c := e.made[id]; c != nil {
		return c.look, nil
	}
	return containers.Look{}, containers.ErrNotFound
}

func (e *engine) Halt(_ context.Context, id string, _ time.Duration) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if c := e.made[id]; c != nil {
		e.note("halt %s", c.spec.Identity[LabelHelper])
		c.look.State = containers.StateExited
	}
	return nil
}

// set changes the state of a helper's containers.
func (e *engine) set(helper string, change func(*containers.Look)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, c := range e.made {
		if c.spec.Identity[LabelHelper] == helper {
			change(&c.look)
		}
	}
}

func (e *engine) done() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.did)
}

// memory is a store that outlives managers.
type memory map[string][]byte

func (m memory) Put(key string, value []byte) error { m[key] = value; return nil }
func (m memory) Get(key string) ([]byte, error)     { return m[key], nil }
func (m memory) Drop(key string) error              { delete(m, key); return nil }

var ada, bob = Owner{UID: 1000, GID: 100, Name: "ada"}, Owner{UID: 1001, GID: 100, Name: "bob"}

// rig is a manager on a fake engine. kill ends it like a kill of the daemon, as far as the
// engine can observe.
type rig struct {
	*Manager
	t      *testing.T
	engine *engine
	store  memory
	// ended lists the groups whose tasks have all ended.
	endedMu sync.Mutex
	ended   map[string]bool
	limits  Limits
	books   ledger   // endedMu guards it, and the next
	keptOf  []string // owners of kept output, and the numbers of containers
	kill    func()
	change  func(*Deps)                // changes the usual dependencies, or nil
	given   map[string][]api.SuiteFile // by container; endedMu guards it
}

// give records the files of a container, and returns its mounts.
func (g *rig) give(name string, files []api.SuiteFile) (shown []containers.Mount) {
	g.endedMu.Lock()
	defer g.endedMu.Unlock()
	if g.given == nil {
		g.given = map[string][]api.SuiteFile{}
	}
	g.given[name] = files
	for _, f := range files {
		shown = append(shown, containers.Mount{Source: "/data" + f.Path, Target: f.Path, ReadOnly: !f.Writable})
	}
	return shown
}

func newRig(t *testing.T) *rig { return newRigWith(t, nil) }

// newRigWith starts a rig after change, if not nil, has changed the manager's dependencies.
func newRigWith(t *testing.T, change func(*Deps)) *rig {
	g := &rig{change: change, t: t, engine: newEngine(), store: memory{}, ended: map[string]bool{}, limits: Limits{Grace: time.Second}, books: ledger{most: 1000, of: map[string]Share{}}}
	g.start()
	return g
}

func (g *rig) start() {
	images, err := pull.New(g.engine, g.store)
	if err != nil {
		g.t.Fatal(err)
	}
	deps := Deps{
		Instance: "i", Driver: g.engine, Host: g.engine, Store: g.store, Images: images, Limits: func() Limits { return g.limits },
		Machine: g,
		Keep: func(o Owner, suite string, since time.Time, name string, _ func(time.Time, containers.LogSink) error) error {
			g.endedMu.Lock()
			defer g.endedMu.Unlock()
			g.keptOf = append(g.keptOf, fmt.Sprintf("%d/%s %s of %d", o.UID, suite, name, g.left()[0]))
			return nil
		},
		Booked: slices.Sorted(maps.Keys(g.books.of)),
		Bound:  func(s *containers.Spec, r *api.Submit) { s.Memory = max(r.HostMem, 512) },
		Place:  func(context.Context, Owner, *containers.Spec, bool) error { return nil },
		Give: func(name string, files []api.SuiteFile) ([]containers.Mount, error) {
			return g.give(name, files), nil
		},
		Unplace: func(Owner, string) {},
		Newest:  func() (int64, error) { return 7, nil },
		Ended: func(_ Owner, group string, after int64) (bool, error) {
			if after != 7 {
				g.t.Errorf("after %d", after)
			}
			g.endedMu.Lock()
			defer g.endedMu.Unlock()
			return g.ended[group], nil
		},
		Log: zerolog.New(zerolog.NewTestWriter(g.t)),
	}
	if g.change != nil {
		g.change(&deps)
	}
	m, err := New(deps)
	if err != nil {
		g.t.Fatal(err)
	}
	g.Manager = m
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan struct{})
	go func() { defer close(over); m.Run(ctx) }()
	g.kill = func() { cancel(); <-over }
}

// end ends the tasks of groups.
func (g *rig) end(groups ...string) {
	g.endedMu.Lock()
	defer g.endedMu.Unlock()
	for _, group := range groups {
		g.ended[group] = true
	}
}

// left returns the numbers of containers, networks and volumes on the engine.
func (g *rig) left() [3]int {
	g.engine.mu.Lock()
	defer g.engine.mu.Unlock()
	return [3]int{len(g.engine.made), len(g.engine.networks), len(g.engine.volumes)}
}

func (g *rig) up(o Owner, name string, s api.Suite) {
	g.t.Helper()
	if err := g.Up(g.t.Context(), o, name, s, nil, false, false); err != nil {
		g.t.Fatal(err)
	}
}

func (g *rig) state(o Owner, name string) api.SuiteState {
	g.t.Helper()
	s, err := g.State(g.t.Context(), o, name)
	if err != nil {
		g.t.Fatal(err)
	}
	return s
}

// lab returns a database, a tracking server that waits for it, and a network and volume.
func lab() api.Suite {
	joined := api.Joined{Networks: []api.NetworkPlace{{Network: "net", Aliases: []string{"x"}}}}
	db := api.Helper{Name: "db", Container: api.Submit{Image: "db:1"}, Joined: joined, Restart: "always", Health: &api.HelperHealth{Test: []string{"CMD", "ok"}}}
	db.Volumes = []api.VolumePlace{{Volume: "data", Target: "/data"}}
	tracker := api.Helper{Name: "tracker", Container: api.Submit{Image: "tracker:1"}, Joined: joined, Waits: []api.HelperWait{{Helper: "db", Condition: "healthy"}}}
	return api.Suite{
		Helpers: []api.Helper{tracker, db}, Waits: []api.HelperWait{{Helper: "tracker", Condition: "started"}},
		Tasks:    map[string]api.Joined{"train": joined},
		Networks: []api.SuiteNetwork{{Name: "net"}}, Volumes: []api.SuiteVolume{{Name: "data"}},
	}
}
