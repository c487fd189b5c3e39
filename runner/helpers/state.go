package helpers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"carma/containers"
	"carma/runner/api"
)

// State returns the state of a suite.
func (m *Manager) State(ctx context.Context, o Owner, name string) (api.SuiteState, error) {
	m.mu.Lock()
	s := m.suites[key{o.UID, name}]
	if s == nil {
		m.mu.Unlock()
		return api.SuiteState{}, refusef(http.StatusNotFound, "no suite %s of yours has helpers", name)
	}
	k := s.kept
	answer := api.SuiteState{Name: k.Name, User: k.Owner.Name, Phase: cmp.Or(s.phase, starting), Reason: s.reason, Keep: k.Suite.Keep, Since: k.Since, Helpers: []api.HelperState{}}
	m.mu.Unlock()
	for _, n := range k.Suite.Networks {
		answer.Networks = append(answer.Networks, n.Name)
	}
	for _, v := range k.Suite.Volumes {
		answer.Volumes = append(answer.Volumes, v.Name)
	}
	list, err := m.Driver.List(ctx, m.labels(&k))
	if err != nil {
		return answer, err
	}
	byName := map[string]containers.Container{}
	for _, c := range list {
		byName[c.Name] = c
	}
	for i := range k.Suite.Helpers {
		h := &k.Suite.Helpers[i]
		for n := range max(1, h.Replicas) {
			one, err := m.one(ctx, &k, h, n+1, byName)
			if err != nil {
				return answer, err
			}
			answer.Helpers = append(answer.Helpers, one)
		}
	}
	return answer, nil
}

// one returns the state of one container of a helper.
func (m *Manager) one(ctx context.Context, k *kept, h *api.Helper, n int, found map[string]containers.Container) (api.HelperState, error) {
	spec, booked := m.spec(k, h, n), m.Machine.Reserved(&h.Container)
	s := api.HelperState{
		Helper: h.Name, Name: k.Name + "-" + h.Name + "-" + spec.Identity[LabelNumber], Container: spec.Name, Image: spec.Image,
		State: "waiting", HostMem: spec.Memory, CPUs: spec.CPUs, HostReserve: booked.HostMem, CPUsReserve: booked.CPUs,
	}
	c, there := found[spec.Name]
	if !there {
		return s, nil
	}
	l, err := m.Host.Look(ctx, c.ID)
	if errors.Is(err, containers.ErrNotFound) {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	s.State, s.Health, s.Restarts, s.Error = string(l.State), l.Health, l.Restarts, l.Error
	if !l.Started.IsZero() && l.Started.Year() > 1 {
		s.Started = l.Started
	}
	if l.State == containers.StateExited {
		code := l.Code
		s.ExitCode = &code
	}
	for _, p := range l.Ports {
		s.Ports = append(s.Ports, api.HelperPort{Container: p.Port, Host: p.Host, Protocol: p.Protocol})
	}
	return s, nil
}

// Logs sends the output of one container to sink, named as in [api.HelperState]. With
// follow it continues over restarts, until the container is gone.
func (m *Manager) Logs(ctx context.Context, o Owner, suite, name string, follow bool, sink containers.LogSink) error {
	m.mu.Lock()
	s := m.suites[key{o.UID, suite}]
	if s == nil {
		m.mu.Unlock()
		return refusef(http.StatusNotFound, "no suite %s of yours has helpers", suite)
	}
	k := s.kept
	m.mu.Unlock()
	container := m.named(&k, name)
	if container == "" {
		return refusef(http.StatusNotFound, "suite %s has no helper %s", suite, name)
	}
	var last time.Time
	remember := func(at time.Time, stream containers.Stream, line []byte, partial bool) {
		last = at
		sink(at, stream, line, partial)
	}
	for {
		err := m.Driver.Logs(ctx, container, last, follow, remember)
		missing := errors.Is(err, containers.ErrNotFound)
		switch {
		case missing && !(follow && m.phase(&k) == starting):
			return nil
		case !follow, err != nil && !missing && !errors.Is(err, containers.ErrUnavailable):
			return err
		case m.phase(&k) == "" || err == nil && m.over(ctx, container):
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

// phase returns the phase of a suite, or "" if it is gone.
func (m *Manager) phase(k *kept) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.suites[k.key()]; s != nil {
		return cmp.Or(s.phase, starting)
	}
	return ""
}

// over reports whether a container has ended and the engine will not start it
// again.
func (m *Manager) over(ctx context.Context, container string) bool {
	l, err := m.Host.Look(ctx, container)
	return err == nil && l.State == containers.StateExited
}

// Known refuses a name that no container of a suite's helpers has.
func (m *Manager) Known(o Owner, suite, name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.suites[key{o.UID, suite}]
	if s == nil || m.named(&s.kept, name) == "" {
		return refusef(http.StatusNotFound, "suite %s has no helper %s", suite, name)
	}
	return nil
}

// named returns the container with a display name, or "" if there is none.
func (m *Manager) named(k *kept, name string) string {
	for i := range k.Suite.Helpers {
		h := &k.Suite.Helpers[i]
		for n := range max(1, h.Replicas) {
			if fmt.Sprintf("%s-%s-%d", k.Name, h.Name, n+1) == name {
				return m.containerName(k, h.Name, n+1)
			}
		}
	}
	return ""
}
