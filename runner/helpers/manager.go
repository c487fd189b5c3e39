package helpers

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"carma/containers"
	"carma/runner/api"
	"carma/runner/pull"
)

// Owner is the owner of a suite.
type Owner struct {
	UID, GID int
	Name     string
}

// Ordinary reports whether the restrictions between users apply to the owner. They do not
// apply to root, who can use the engine directly.
func (o Owner) Ordinary() bool { return o.UID != 0 }

// Limits are the limits for one user.
type Limits struct {
	Suites, Helpers, Volumes int // 0 means no limit
	// Pull is the pull policy: missing, always or never.
	Pull string
	// Grace is the default time between a stop signal and the kill.
	Grace time.Duration
}

// Store keeps values over restarts.
type Store interface {
	Put(key string, value []byte) error
	// Get returns nil for a missing key.
	Get(key string) ([]byte, error)
	Drop(key string) error
}

// Deps contains the dependencies of a [Manager].
type Deps struct {
	// Instance labels resources, so that several daemons can share an engine.
	Instance string
	Driver   containers.Driver
	// Host is the same driver, or nil if it cannot run helpers. Why is then the reason.
	Host  containers.Hoster
	Why   error
	Store Store
	// Images fetches the helpers' images, and decides who may use them.
	Images *pull.Puller
	// Root is the engine's folder; see [containers.Engine].
	Root    func() string
	Limits  func() Limits
	Machine Machine
	// Booked lists the suites with an allocation when the daemon began.
	Booked []string
	// Bound sets the limits of a helper's container.
	Bound func(*containers.Spec, *api.Submit)
	// Place replaces the sources of the mounts of an owner's container by places that show
	// the checked files. They must stay as long as the engine may start the container again,
	// until Unplace. With files, Place refuses a mount that root could write to.
	Place func(ctx context.Context, o Owner, spec *containers.Spec, files bool) error
	// Give writes the files of a container and returns the mounts that show them,
	// until Unplace too.
	Give    func(name string, files []api.SuiteFile) ([]containers.Mount, error)
	Unplace func(o Owner, name string)
	// Shown returns nil if the engine can show files of the daemon. A nil Shown means
	// that it can.
	Shown func() error
	// Keep stores the output of a container that is about to be removed, for its owner.
	// read passes the output after an instant to sink. If Keep is nil, the output is
	// dropped.
	Keep func(o Owner, suite string, since time.Time, name string, read func(after time.Time, sink containers.LogSink) error) error
	// Newest returns the highest number of a task.
	Newest func() (int64, error)
	// Ended reports whether the owner has submitted a group of this name after the
	// task of that number, and all of its tasks have ended.
	Ended func(o Owner, group string, after int64) (bool, error)
	// Closed is set if suite networks have no access to other networks.
	Closed bool
	Log    zerolog.Logger
}

// Manager manages the suites of all users. It is safe for concurrent use.
type Manager struct {
	Deps
	work context.Context // ends when the daemon stops; containers keep running
	all  sync.WaitGroup  // goroutines that bring suites up or down

	mu     sync.Mutex
	suites map[key]*suite
}

// key identifies a suite. Each user has their own names.
type key struct {
	uid  int
	name string
}

func (k key) String() string { return strconv.Itoa(k.uid) + "/" + k.name }

// New returns a manager with the stored suites. [Manager.Run] continues them.
func New(d Deps) (*Manager, error) {
	m := &Manager{Deps: d, suites: map[key]*suite{}}
	names, err := m.index()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		b, err := m.Store.Get(storeKey(name))
		if err != nil {
			return nil, err
		}
		if b == nil {
			continue // the suite was being removed
		}
		var k kept
		if err := json.Unmarshal(b, &k); err != nil {
			return nil, fmt.Errorf("suite %s in the journal: %w", name, err)
		}
		m.suites[k.key()] = &suite{kept: k, changed: make(chan struct{})}
	}
	return m, nil
}

// kept is the stored form of a suite.
type kept struct {
	Owner Owner     `json:"owner"`
	Name  string    `json:"name"`
	Suite api.Suite `json:"suite"`
	// After is the number above which tasks belong to the suite's run.
	After int64     `json:"after"`
	Since time.Time `json:"since"`
	// Down is set while the suite is being taken down.
	Down *down `json:"down,omitempty"`
}

// Form returns an empty value of the stored form of a suite.
func Form() any { return kept{} }

// IsSuite reports whether a key of the store contains a suite.
func IsSuite(key string) bool { return strings.HasPrefix(key, storeKey("")) }

// down is an order to take a suite down. With Grace 0 the helpers' settings apply.
type down struct {
	Volumes bool          `json:"volumes,omitempty"`
	Grace   time.Duration `json:"grace,omitempty"`
}

func (k *kept) key() key { return key{k.Owner.UID, k.Name} }

// indexKey is the key of the list of all suites' names. A name is in the list as long as
// its suite is stored.
const indexKey = "suites"

func storeKey(name string) string { return "suite/" + name }

func (m *Manager) index() (names []string, err error) {
	b, err := m.Store.Get(indexKey)
	if err != nil || b == nil {
		return nil, err
	}
	return names, json.Unmarshal(b, &names)
}

// store stores a suite, the name before the suite. The caller holds mu.
func (m *Manager) store(k *kept) error {
	names, err := m.index()
	if err != nil {
		return err
	}
	if name := k.key().String(); !slices.Contains(names, name) {
		b, err := json.Marshal(append(names, name))
		if err == nil {
			err = m.Store.Put(indexKey, b)
		}
		if err != nil {
			return err
		}
	}
	b, err := json.Marshal(k)
	if err != nil {
		return err
	}
	return m.Store.Put(storeKey(k.key().String()), b)
}

// forget deletes the entry of a removed suite, and then its name. The caller holds mu.
func (m *Manager) forget(k key) error {
	if err := m.Store.Drop(storeKey(k.String())); err != nil {
		return err
	}
	names, err := m.index()
	if err != nil {
		return err
	}
	b, err := json.Marshal(slices.DeleteFunc(names, func(n string) bool { return n == k.String() }))
	if err != nil {
		return err
	}
	return m.Store.Put(indexKey, b)
}

// lookEvery is the time between two checks for the end of a suite's tasks.
const lookEvery = time.Second

// Run continues the stored suites and takes suites down when their tasks have ended, until
// ctx ends. Containers keep running.
func (m *Manager) Run(ctx context.Context) {
	m.mu.Lock()
	m.work = ctx
	for _, s := range m.suites {
		m.begin(s, false)
	}
	m.mu.Unlock()
	if m.Host != nil {
		m.all.Go(func() { m.sweep(ctx) })
	}
	m.all.Go(func() { m.settle(ctx) })
	for tick := time.NewTicker(lookEvery); ; {
		select {
		case <-ctx.Done():
			tick.Stop()
			m.mu.Lock()
			m.work = nil // no further work is begun
			m.mu.Unlock()
			m.all.Wait()
			return
		case <-tick.C:
			m.endFinished()
		}
	}
}

// endFinished takes down suites after the end of their tasks.
func (m *Manager) endFinished() {
	m.mu.Lock()
	open := map[*suite]kept{}
	for _, s := range m.suites {
		if !s.Suite.Keep && s.Down == nil {
			open[s] = s.kept
		}
	}
	m.mu.Unlock()
	for s, was := range open {
		over, err := m.Ended(was.Owner, was.Name, was.After)
		if err != nil {
			m.Log.Debug().Err(err).Str("suite", was.Name).Msg("it cannot be seen whether the tasks of a suite have ended")
			continue
		}
		if !over {
			continue
		}
		if err := m.takeDown(s, down{}); err != nil {
			m.Log.Warn().Err(err).Str("suite", was.Name).Msg("a suite whose tasks have ended cannot be taken down; it is tried again")
		}
	}
}
