package helpers

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"carma/runner/api"
	"carma/runner/pull"
)

// RefusedError is a request that is refused. Status is the HTTP status.
type RefusedError struct {
	Status int
	Text   string
}

func (e *RefusedError) Error() string { return e.Text }

func refusef(status int, format string, args ...any) error {
	return &RefusedError{status, fmt.Sprintf(format, args...)}
}

// The phases of a suite.
const (
	starting = "starting"
	ready    = "ready"
	failed   = "failed"
	stopping = "stopping"
)

// suite is a suite with its running work. The manager's mu guards it.
type suite struct {
	kept
	by            pull.Credentials // credentials for the images that the next work fetches
	phase, reason string
	cancel        func()        // cancels the running work
	done          chan struct{} // closed when the running work has ended, or nil if none was begun
	changed       chan struct{} // closed and replaced at each change
	removed       api.SuiteRemoved
	gone          bool
}

// tell sets the state of a suite. The caller holds mu.
func (s *suite) tell(phase, reason string) {
	s.phase, s.reason = phase, reason
	close(s.changed)
	s.changed = make(chan struct{})
}

// begin starts bringing a suite up or down, after the running work has ended. fresh is
// set if a user has requested it now. The caller holds mu.
func (m *Manager) begin(s *suite, fresh bool) {
	if m.work == nil || m.work.Err() != nil {
		return // [Manager.Run] of this daemon or the next one begins the work
	}
	before := s.done
	if s.cancel != nil {
		s.cancel()
	}
	ctx, cancel := context.WithCancel(m.work)
	s.cancel, s.done = cancel, make(chan struct{})
	done, k, by := s.done, s.kept, s.by
	s.by = nil
	if k.Down != nil {
		s.tell(stopping, "")
	} else {
		s.tell(starting, "")
	}
	m.all.Go(func() {
		defer close(done)
		defer cancel()
		if before != nil {
			<-before
		}
		if k.Down != nil {
			m.bringDown(ctx, s, &k)
			return
		}
		err := m.bringUp(ctx, s, &k, by, fresh)
		m.mu.Lock()
		defer m.mu.Unlock()
		switch {
		case ctx.Err() != nil || s.done != done: // other work was begun meanwhile
		case err != nil:
			m.Log.Warn().Err(err).Str("suite", k.Name).Str("user", k.Owner.Name).Msg("a helper cannot start")
			s.tell(failed, sentence(err))
		default:
			s.tell(ready, "")
		}
	})
}

// sentence returns the text of an error in one line, without the engine's line breaks.
func sentence(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// Up brings a suite up, or changes a running suite to the new description. It returns
// when the description is stored. With check it only reports whether it could do so.
func (m *Manager) Up(ctx context.Context, o Owner, name string, s api.Suite, by pull.Credentials, check, unlimited bool) error {
	if m.Host == nil && !onlyFiles(&s) {
		return refusef(http.StatusUnprocessableEntity, "suite %s has helpers, networks or volumes, and %v; write x-carma: {task: true} to make a helper a task, or use a daemon with --driver docker", name, m.Why)
	}
	after(&s)
	if err := m.check(o, name, &s); err != nil {
		return err
	}
	if err := m.Machine.Book(ctx, key{o.UID, name}.String(), m.shareOf(&s), Look); err != nil {
		return err
	}
	if !check {
		if err := m.untilDown(ctx, key{o.UID, name}); err != nil {
			return err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !unlimited {
		if err := m.room(o, name, &s); err != nil {
			return err
		}
	}
	if check {
		return nil
	}
	old := m.suites[key{o.UID, name}]
	if old != nil && old.Down != nil {
		return refusef(http.StatusConflict, "suite %s is being taken down; try again when that is done", name)
	}
	newest, err := m.Newest()
	if err != nil {
		return err
	}
	next := kept{Owner: o, Name: name, Suite: s, After: newest, Since: time.Now()}
	if err := m.store(&next); err != nil {
		return err
	}
	if old == nil {
		old = &suite{changed: make(chan struct{})}
		m.suites[next.key()] = old
	}
	old.kept, old.by = next, by
	m.begin(old, true)
	return nil
}

// untilDown waits for a suite that is being taken down.
func (m *Manager) untilDown(ctx context.Context, k key) error {
	for {
		m.mu.Lock()
		s := m.suites[k]
		if s == nil || s.Down == nil {
			m.mu.Unlock()
			return nil
		}
		changed := s.changed
		m.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// room refuses a suite that would bring a user over a limit. The caller holds mu.
func (m *Manager) room(o Owner, name string, s *api.Suite) error {
	limit := m.Limits()
	suites, helpers, volumes := 1, containersOf(s), len(s.Volumes)
	for k, other := range m.suites {
		if k.uid == o.UID && k.name != name {
			suites, helpers, volumes = suites+1, helpers+containersOf(&other.Suite), volumes+len(other.Suite.Volumes)
		}
	}
	for _, of := range []struct {
		have, most int
		what       string
	}{{suites, limit.Suites, "suites with helpers"}, {helpers, limit.Helpers, "helpers"}, {volumes, limit.Volumes, "volumes in suites that are up"}} {
		if of.most > 0 && of.have > of.most {
			return refusef(http.StatusTooManyRequests, "you would have %d %s, and this server takes at most %d of one user; `carma suite down` takes one down", of.have, of.what, of.most)
		}
	}
	return nil
}

func containersOf(s *api.Suite) (n int) {
	for i := range s.Helpers {
		n += max(1, s.Helpers[i].Replicas)
	}
	return n
}

// Find returns the owner of the named suite. This is the caller, or for an administrator
// the only other user who has such a suite.
func (m *Manager) Find(o Owner, name string, admin bool) (Owner, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.suites[key{o.UID, name}]; s != nil {
		return s.Owner, nil
	}
	var others []Owner
	for k, s := range m.suites {
		if k.name == name {
			others = append(others, s.Owner)
		}
	}
	switch {
	case admin && len(others) == 1:
		return others[0], nil
	case admin && len(others) > 1:
		return Owner{}, refusef(http.StatusConflict, "several users have a suite %s; take it down as one of them", name)
	}
	return Owner{}, refusef(http.StatusNotFound, "no suite %s of yours has helpers", name)
}

// Down takes a suite down. It returns the removed resources when the suite is down.
func (m *Manager) Down(ctx context.Context, o Owner, name string, volumes bool, grace time.Duration) (api.SuiteRemoved, error) {
	m.mu.Lock()
	s := m.suites[key{o.UID, name}]
	m.mu.Unlock()
	if s == nil {
		return m.dropVolumes(ctx, o, name, volumes)
	}
	if err := m.takeDown(s, down{Volumes: volumes, Grace: grace}); err != nil {
		return api.SuiteRemoved{}, err
	}
	for {
		m.mu.Lock()
		gone, changed, removed := s.gone, s.changed, s.removed
		m.mu.Unlock()
		if gone {
			return removed, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return api.SuiteRemoved{}, ctx.Err()
		}
	}
}

// takeDown stores the order to take a suite down, and begins. Later orders only add to
// it.
func (m *Manager) takeDown(s *suite, how down) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s.gone {
		return nil
	}
	next := s.kept
	if earlier := s.Down; earlier != nil {
		if (earlier.Volumes || !how.Volumes) && (how.Grace == 0 || how.Grace == earlier.Grace) && s.phase == stopping {
			return nil
		}
		how.Volumes = how.Volumes || earlier.Volumes
	}
	next.Down = &how
	if err := m.store(&next); err != nil {
		return err
	}
	s.kept = next
	m.begin(s, true)
	return nil
}

// users returns the suites of a user that are up.
func (m *Manager) users(uid int) (all []*suite) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for k, s := range m.suites {
		if k.uid == uid {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b *suite) int { return strings.Compare(a.Name, b.Name) })
	return all
}
