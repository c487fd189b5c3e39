package helpers

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"carma/containers"
	"carma/runner/api"
)

// bringDown removes all resources of a suite, and then its entry in the store. A call
// that fails is repeated until ctx ends.
func (m *Manager) bringDown(ctx context.Context, s *suite, k *kept) {
	for wait := pause; ; wait = min(2*wait, 30*time.Second) {
		removed, err := m.clear(ctx, k)
		if err == nil {
			err = m.unbook(ctx, k)
		}
		if err == nil {
			m.mu.Lock()
			if s.Down != nil && s.Down.Volumes == k.Down.Volumes {
				if err = m.forget(k.key()); err == nil {
					s.removed, s.gone = removed, true
					delete(m.suites, k.key())
				}
			}
			s.tell(stopping, "")
			m.mu.Unlock()
			if err == nil {
				return
			}
		}
		if ctx.Err() != nil {
			return
		}
		m.Log.Warn().Err(err).Str("suite", k.Name).Str("user", k.Owner.Name).Msg("a suite cannot be taken down; it is tried again")
		m.mu.Lock()
		s.tell(stopping, sentence(err))
		m.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// clear removes the containers of a suite, starting with containers that wait for others,
// then its networks and, if asked, its volumes.
func (m *Manager) clear(ctx context.Context, k *kept) (removed api.SuiteRemoved, err error) {
	removed = api.SuiteRemoved{Helpers: []string{}, Networks: []string{}, Volumes: []string{}}
	found, err := m.found(ctx, k)
	if err != nil {
		return removed, err
	}
	level, err := levels(k.Suite.Helpers)
	if err != nil {
		level = nil
	}
	byLevel := map[int][]containers.Container{}
	most := 0
	for _, c := range found {
		n := level[c.Labels[LabelHelper]]
		byLevel[n], most = append(byLevel[n], c), max(most, n)
	}
	var mu sync.Mutex
	for n := most; n >= 0; n-- {
		g, ctx := errgroup.WithContext(ctx)
		for _, c := range byLevel[n] {
			g.Go(func() error {
				i := slices.IndexFunc(k.Suite.Helpers, func(h api.Helper) bool { return h.Name == c.Labels[LabelHelper] })
				var h *api.Helper
				if i >= 0 {
					h = &k.Suite.Helpers[i]
				}
				if err := m.remove(ctx, k, c, h, k.Down.Grace); err != nil {
					return err
				}
				mu.Lock()
				defer mu.Unlock()
				removed.Helpers = append(removed.Helpers, people(k.Name, c))
				return nil
			})
		}
		if err := g.Wait(); err != nil {
			return removed, err
		}
	}
	slices.Sort(removed.Helpers)
	for i := range k.Suite.Helpers { // also for a container that an earlier daemon removed
		h := &k.Suite.Helpers[i]
		for n := range max(1, h.Replicas) {
			m.Unplace(k.Owner, m.containerName(k, h.Name, n+1))
		}
	}
	return removed, m.clearGrounds(ctx, k, &removed)
}

// keepOutput stores the output of a container that has ended. If that fails, the container
// is removed anyway.
func (m *Manager) keepOutput(ctx context.Context, k *kept, c containers.Container) {
	if m.Keep == nil {
		return
	}
	name := people(k.Name, c)
	err := m.Keep(k.Owner, k.Name, k.Since, name, func(after time.Time, sink containers.LogSink) error {
		return try(ctx, func() error {
			return m.Driver.Logs(ctx, c.ID, after, false, func(at time.Time, stream containers.Stream, line []byte, partial bool) {
				after = at // a second try continues after this line
				sink(at, stream, line, partial)
			})
		})
	})
	if err != nil && !errors.Is(err, containers.ErrNotFound) {
		m.Log.Warn().Err(err).Str("helper", name).Msg("the output of a helper is not kept, or not all of it")
	}
}

// people returns the display name of a container, with suite, helper and number.
func people(suite string, c containers.Container) string {
	return suite + "-" + c.Labels[LabelHelper] + "-" + c.Labels[LabelNumber]
}

// remove stops a container with its grace, and removes it. h is nil if the container's
// helper is unknown.
func (m *Manager) remove(ctx context.Context, k *kept, c containers.Container, h *api.Helper, grace time.Duration) error {
	if grace == 0 && h != nil {
		grace = h.Container.StopGrace
	}
	if grace == 0 {
		grace = m.Limits().Grace
	}
	err := try(ctx, func() error { return m.Host.Halt(ctx, c.ID, grace) })
	if err == nil {
		m.keepOutput(ctx, k, c)
		err = try(ctx, func() error { return m.Driver.Remove(ctx, c.ID) })
	}
	if errors.Is(err, containers.ErrNotFound) {
		err = nil
	}
	if err == nil {
		m.Unplace(k.Owner, c.Name)
	}
	return err
}

// sweep removes resources without a suite. They remain if a daemon was killed after it
// had deleted the suite's entry, or if the journal was replaced by an older copy. Volumes
// stay.
func (m *Manager) sweep(ctx context.Context) {
	var list []containers.Container
	var networks []string
	labels := map[string]string{LabelInstance: m.Instance}
	err := try(ctx, func() (err error) { list, err = m.Driver.List(ctx, labels); return err })
	if err == nil {
		err = try(ctx, func() (err error) { networks, err = m.Host.Networks(ctx, labels); return err })
	}
	if err != nil {
		return
	}
	known, inUse := m.known()
	for _, c := range list {
		if known[c.Labels[LabelOwner]+"/"+c.Labels[LabelSuite]] {
			continue
		}
		m.Log.Warn().Str("container", c.Name).Msg("a helper of a suite that is gone is removed")
		_ = try(ctx, func() error { return m.Driver.Remove(ctx, c.ID) })
	}
	for _, name := range networks {
		if !inUse[name] {
			_ = try(ctx, func() error { return m.Host.RemoveNetwork(ctx, name) })
		}
	}
}

// known returns the suites, and the names of their networks.
func (m *Manager) known() (suites, networks map[string]bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	suites, networks = map[string]bool{}, map[string]bool{}
	for k, s := range m.suites {
		suites[k.String()] = true
		for _, n := range s.Suite.Networks {
			name, _ := m.thing(&s.kept, n.Name, n.Shared)
			networks[name] = true
		}
	}
	return suites, networks
}
