package helpers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"carma/containers"
	"carma/runner/api"
	"carma/runner/pull"
)

// pause is the time between two checks of a condition.
const pause = 200 * time.Millisecond

// try repeats a call of the engine until the engine answers.
func try(ctx context.Context, call func() error) error {
	for {
		err := call()
		if !errors.Is(err, containers.ErrUnavailable) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

// bringUp creates a suite's missing resources. With fresh it also recreates resources
// whose description or image changed.
func (m *Manager) bringUp(ctx context.Context, s *suite, k *kept, by pull.Credentials, fresh bool) error {
	if m.Host == nil && !onlyFiles(&k.Suite) {
		return m.Why
	}
	if err := m.book(ctx, s, k, fresh); err != nil {
		return err
	}
	if err := m.grounds(ctx, k); err != nil {
		return err
	}
	found, err := m.found(ctx, k)
	if err != nil {
		return err
	}
	if err := m.clearOthers(ctx, k, found); err != nil {
		return err
	}
	up := &ascent{Manager: m, suite: s, kept: k, by: by, fresh: fresh, found: found, started: map[string]chan struct{}{}}
	for i := range k.Suite.Helpers {
		up.started[k.Suite.Helpers[i].Name] = make(chan struct{})
	}
	g, ctx := errgroup.WithContext(ctx)
	for i := range k.Suite.Helpers {
		h := &k.Suite.Helpers[i]
		g.Go(func() error {
			if err := up.helper(ctx, h); err != nil {
				return fmt.Errorf("helper %s: %w", h.Name, err)
			}
			close(up.started[h.Name])
			return nil
		})
	}
	g.Go(func() error { return up.waitFor(ctx, "the tasks", k.Suite.Waits) })
	return g.Wait()
}

// found returns the containers of a suite, by name.
func (m *Manager) found(ctx context.Context, k *kept) (map[string]containers.Container, error) {
	var list []containers.Container
	err := try(ctx, func() (err error) { list, err = m.Driver.List(ctx, m.labels(k)); return err })
	all := map[string]containers.Container{}
	for _, c := range list {
		all[c.Name] = c
	}
	return all, err
}

// clearOthers removes containers that are no longer in the suite.
func (m *Manager) clearOthers(ctx context.Context, k *kept, found map[string]containers.Container) error {
	for name, c := range found {
		i := slices.IndexFunc(k.Suite.Helpers, func(h api.Helper) bool { return h.Name == c.Labels[LabelHelper] })
		var n int
		_, _ = fmt.Sscan(c.Labels[LabelNumber], &n)
		if i >= 0 && n >= 1 && n <= max(1, k.Suite.Helpers[i].Replicas) {
			continue
		}
		if err := m.remove(ctx, k, c, nil, 0); err != nil {
			return err
		}
		delete(found, name)
	}
	return nil
}

// ascent is the start of a suite.
type ascent struct {
	*Manager
	suite   *suite
	kept    *kept
	by      pull.Credentials
	fresh   bool
	found   map[string]containers.Container // not changed after it is set
	started map[string]chan struct{}        // closed when a helper has started
	renewed sync.Map                        // names of helpers with a recreated container
}

// isNew reports whether this ascent created the container of a helper. A container that
// shared the previous container's network then has no network any more. An empty name is
// no helper.
func (a *ascent) isNew(helper string) bool {
	if helper == "" {
		return false
	}
	_, was := a.found[a.containerName(a.kept, helper, 1)]
	_, renewed := a.renewed.Load(helper)
	return renewed || !was
}

// helper starts a helper when its conditions are met.
func (a *ascent) helper(ctx context.Context, h *api.Helper) error {
	if err := a.waitFor(ctx, h.Name, h.Waits); err != nil {
		return err
	}
	for n := range max(1, h.Replicas) {
		if err := a.start(ctx, h, n+1); err != nil {
			return err
		}
	}
	return nil
}

// start makes and starts a container, unless it exists. It leaves an ended container
// alone, because the engine decides when to restart it. But after a restart of the
// machine the engine may lack the mounts for that.
func (a *ascent) start(ctx context.Context, h *api.Helper, n int) error {
	spec := a.spec(a.kept, h, n)
	if a.fresh || spec.Hosted.Restart != "" || h.Within != "" {
		if err := a.outdated(ctx, h, &spec); err != nil {
			return err
		}
	}
	if len(spec.Mounts) > 0 {
		if _, there := a.found[spec.Name]; !there || a.fresh {
			if err := a.Place(ctx, a.kept.Owner, &spec, len(h.Files) > 0); err != nil {
				return err
			}
		}
	}
	if len(h.Files) > 0 {
		shown, err := a.Give(spec.Name, ownedBy(h.Files, spec.User))
		if err != nil {
			return err
		}
		spec.Mounts = append(spec.Mounts, shown...)
	}
	id, err := a.create(ctx, h, spec)
	if err != nil {
		return err
	}
	if err := try(ctx, func() error { return a.Driver.Start(ctx, id) }); err != nil {
		return err
	}
	a.Machine.Follow(a.kept.key().String(), spec.Name, id)
	return nil
}

// outdated removes a container with another description or image, or one that the engine
// could not start again.
func (a *ascent) outdated(ctx context.Context, h *api.Helper, spec *containers.Spec) error {
	c, there := a.found[spec.Name]
	if !there {
		return nil
	}
	old := a.fresh && c.Labels[LabelMade] != spec.Labels[LabelMade] || a.isNew(h.Within)
	if !old && c.State == containers.StateExited {
		var l containers.Look
		err := try(ctx, func() (err error) { l, err = a.Host.Look(ctx, c.ID); return err })
		if err != nil && !errors.Is(err, containers.ErrNotFound) {
			return err
		}
		// A new request for a helper starts it again, as docker compose does.
		old = a.fresh || l.Error != ""
	}
	if !old {
		return nil
	}
	a.renewed.Store(h.Name, true)
	return a.remove(ctx, a.kept, c, h, 0)
}

// create makes a container, and fetches its image if that is missing.
func (a *ascent) create(ctx context.Context, h *api.Helper, spec containers.Spec) (id string, err error) {
	policy := h.Container.Pull
	if policy == "" {
		policy = a.Limits().Pull
	}
	if _, there := a.found[spec.Name]; a.fresh && policy == "always" && !there {
		if err := a.pull(ctx, h); err != nil {
			return "", err
		}
	}
	make := func() error {
		if err := try(ctx, func() error { return a.Images.Check(ctx, a.kept.Owner.UID, spec.Image, a.by) }); err != nil {
			return err
		}
		return try(ctx, func() (err error) { id, err = a.Driver.Create(ctx, spec); return err })
	}
	if err = make(); !errors.Is(err, containers.ErrNotFound) {
		return id, err
	}
	if policy == "never" {
		return "", fmt.Errorf("image %s is not on this machine, and it is not to be fetched", spec.Image)
	}
	if err := a.pull(ctx, h); err != nil {
		return "", err
	}
	return id, make()
}

func (a *ascent) pull(ctx context.Context, h *api.Helper) error {
	a.step(fmt.Sprintf("helper %s: fetching the image %s", h.Name, h.Container.Image))
	if err := try(ctx, func() error { return a.Images.Pull(ctx, a.kept.Owner.UID, h.Container.Image, a.by) }); err != nil {
		return fmt.Errorf("image %s is not on this machine and cannot be pulled: %w", h.Container.Image, err)
	}
	return nil
}

// step reports the current step of the ascent.
func (a *ascent) step(text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.suite.phase == starting {
		a.suite.tell(starting, text)
	}
}
