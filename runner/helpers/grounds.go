package helpers

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"

	"carma/containers"
	"carma/runner/api"
)

// grounds makes the networks and volumes.
func (m *Manager) grounds(ctx context.Context, k *kept) error {
	if m.Host == nil {
		return nil // see onlyFiles
	}
	for _, n := range k.Suite.Networks {
		name, labels := m.thing(k, n.Name, n.Shared)
		err := try(ctx, func() error {
			return m.Host.MakeNetwork(ctx, containers.Network{Name: name, Labels: labels, Internal: n.Internal || m.Closed})
		})
		if err != nil {
			return fmt.Errorf("network %s: %w", n.Name, err)
		}
	}
	for _, v := range k.Suite.Volumes {
		name, labels := m.thing(k, v.Name, v.Shared)
		err := try(ctx, func() error {
			folder, made, err := m.Host.MakeVolume(ctx, containers.Volume{Name: name, Labels: labels})
			if err == nil && made && m.written(k, v.Name) {
				m.open(folder)
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("volume %s: %w", v.Name, err)
		}
	}
	return nil
}

// written reports whether containers that run as the owner mount a volume.
func (m *Manager) written(k *kept, volume string) bool {
	has := func(j api.Joined) bool {
		return slices.ContainsFunc(j.Volumes, func(v api.VolumePlace) bool { return v.Volume == volume })
	}
	for _, j := range k.Suite.Tasks {
		if has(j) {
			return true
		}
	}
	return slices.ContainsFunc(k.Suite.Helpers, func(h api.Helper) bool { return asOwner(k, &h) && has(h.Joined) })
}

// open makes a new volume writable for any user of a container. No other user of the
// machine can reach the volume, because the engine's folder belongs to root.
func (m *Manager) open(folder string) {
	if _, err := os.Stat(folder); err != nil {
		return // the engine is on another machine
	}
	if err := os.Chmod(folder, 0o777); err != nil {
		m.Log.Warn().Err(err).Str("folder", folder).Msg("a volume can only be written by root")
	}
}

// clearGrounds removes networks and volumes. A network that another suite of the
// owner shares stays.
func (m *Manager) clearGrounds(ctx context.Context, k *kept, removed *api.SuiteRemoved) error {
	if m.Host == nil {
		return nil
	}
	for _, n := range k.Suite.Networks {
		if n.Shared && m.shared(k, n.Name) {
			continue
		}
		name, _ := m.thing(k, n.Name, n.Shared)
		if err := try(ctx, func() error { return m.Host.RemoveNetwork(ctx, name) }); err != nil {
			return err
		}
		removed.Networks = append(removed.Networks, n.Name)
	}
	if !k.Down.Volumes {
		return nil
	}
	for _, v := range k.Suite.Volumes {
		if v.Shared {
			continue // as under docker compose
		}
		name, _ := m.thing(k, v.Name, false)
		if err := try(ctx, func() error { return m.Host.RemoveVolume(ctx, name) }); err != nil {
			return err
		}
		removed.Volumes = append(removed.Volumes, v.Name)
	}
	return nil
}

// dropVolumes removes the remaining volumes of a suite.
func (m *Manager) dropVolumes(ctx context.Context, o Owner, name string, volumes bool) (api.SuiteRemoved, error) {
	removed := api.SuiteRemoved{Helpers: []string{}, Networks: []string{}, Volumes: []string{}}
	if m.Host == nil || !volumes {
		return removed, refusef(http.StatusNotFound, "no suite %s of yours has helpers", name)
	}
	k := kept{Owner: o, Name: name}
	names, err := m.Host.Volumes(ctx, m.labels(&k))
	if err != nil {
		return removed, err
	}
	prefix, _ := m.thing(&k, "", false)
	for _, full := range names {
		if err := m.Host.RemoveVolume(ctx, full); err != nil {
			return removed, err
		}
		removed.Volumes = append(removed.Volumes, strings.TrimPrefix(full, prefix))
	}
	if len(names) == 0 {
		return removed, refusef(http.StatusNotFound, "no suite %s of yours has helpers or volumes", name)
	}
	return removed, nil
}

// shared reports whether another suite of the owner shares a network.
func (m *Manager) shared(k *kept, network string) bool {
	for _, other := range m.users(k.Owner.UID) {
		if other.Name != k.Name && slices.ContainsFunc(other.Suite.Networks, func(n api.SuiteNetwork) bool { return n.Shared && n.Name == network }) {
			return true
		}
	}
	return false
}
