package helpers

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"carma/containers"
	"carma/containers/option"
	"carma/runner/api"
)

// The labels of the resources of a suite. A network or volume that suites share has the
// first two labels and LabelName.
const (
	LabelInstance = "carma.helpers"
	LabelOwner    = "carma.suite-uid"
	LabelSuite    = "carma.suite"
	LabelHelper   = "carma.helper"
	LabelNumber   = "carma.helper-number"
	LabelName     = "carma.suite-name" // of a network or volume
	// LabelMade is a digest of a container's specification. It is compared, but does not
	// identify the container.
	LabelMade = "carma.helper-made"
)

// labels returns the labels of everything that belongs to only one suite.
func (m *Manager) labels(k *kept) map[string]string {
	return map[string]string{LabelInstance: m.Instance, LabelOwner: strconv.Itoa(k.Owner.UID), LabelSuite: k.Name}
}

// containerName is fixed by the suite, the helper and the number, so that the
// engine itself refuses to run one twice.
func (m *Manager) containerName(k *kept, helper string, n int) string {
	return fmt.Sprintf("carma-%s-%d-%s.%s.%d", m.Instance, k.Owner.UID, k.Name, helper, n)
}

// thing returns the name and the labels of a network or volume.
func (m *Manager) thing(k *kept, name string, shared bool) (string, map[string]string) {
	labels := m.labels(k)
	labels[LabelName] = name
	if shared {
		delete(labels, LabelSuite)
		return fmt.Sprintf("carma-%s-%d.%s", m.Instance, k.Owner.UID, name), labels
	}
	return fmt.Sprintf("carma-%s-%d-%s.%s", m.Instance, k.Owner.UID, k.Name, name), labels
}

func (m *Manager) network(k *kept, name string) string {
	i := slices.IndexFunc(k.Suite.Networks, func(n api.SuiteNetwork) bool { return n.Name == name })
	full, _ := m.thing(k, name, i >= 0 && k.Suite.Networks[i].Shared)
	return full
}

func (m *Manager) volume(k *kept, name string) string {
	if name == "" {
		return "" // a volume without a name belongs to only one container
	}
	i := slices.IndexFunc(k.Suite.Volumes, func(v api.SuiteVolume) bool { return v.Name == name })
	full, _ := m.thing(k, name, i >= 0 && k.Suite.Volumes[i].Shared)
	return full
}

// asOwner reports whether a helper runs as its owner; see [checker.user].
func asOwner(k *kept, h *api.Helper) bool {
	return k.Owner.Ordinary() && len(h.Container.Mounts) > 0
}

// spec describes the n-th container of a helper.
func (m *Manager) spec(k *kept, h *api.Helper, n int) containers.Spec {
	c := &h.Container
	s := containers.Spec{
		Name: m.containerName(k, h.Name, n), Image: c.Image, Labels: map[string]string{LabelMade: made(h)}, Identity: m.labels(k),
		Entrypoint: c.Entrypoint, Command: c.Command, Env: c.Env, ContainerOptions: c.ContainerOptions, User: c.User, NoNewPrivileges: true,
	}
	s.Identity[LabelHelper], s.Identity[LabelNumber] = h.Name, strconv.Itoa(n)
	m.Bound(&s, c)
	for _, v := range c.Mounts {
		s.Mounts = append(s.Mounts, containers.Mount{Source: v.Source, Target: v.Target, ReadOnly: v.ReadOnly})
	}
	hosted := m.joined(k, &h.Joined)
	if h.Within != "" {
		hosted.Within = m.containerName(k, h.Within, 1)
	}
	hosted.Restart, hosted.Tries, _ = restart(h.Restart)
	hosted.Reduced, hosted.Capabilities = true, capabilities(h)
	hosted.Sysctls, hosted.ReadOnly, hosted.Groups = h.Sysctls, h.ReadOnly, h.Groups
	s.Init, s.StopSignal, s.Hostname, s.TTY, s.Interactive = h.Init, h.StopSignal, h.Hostname, h.Terminal, h.Stdin
	if asOwner(k, h) {
		s.User, hosted.Capabilities = fmt.Sprintf("%d:%d", k.Owner.UID, k.Owner.GID), nil
	}
	for _, p := range h.Ports {
		s.Ports = append(s.Ports, option.Port{Port: p.Container, Host: p.Host, Protocol: protocol(p.Protocol)}.Text())
	}
	for _, u := range h.Ulimits {
		s.Ulimits = append(s.Ulimits, option.Ulimit{Name: u.Name, Soft: u.Soft, Hard: u.Hard}.String())
	}
	for _, t := range h.Tmpfs {
		if hosted.Tmpfs == nil {
			hosted.Tmpfs = map[string]string{}
		}
		folder, options, _ := strings.Cut(t, ":")
		hosted.Tmpfs[folder] = options
	}
	if t := h.Health; t != nil {
		hosted.Health = &containers.Health{Test: t.Test, Interval: t.Interval, Timeout: t.Timeout, StartPeriod: t.StartPeriod, Retries: t.Retries}
	}
	s.Hosted = hosted
	return s
}

func protocol(name string) string {
	if name == "" {
		return "tcp"
	}
	return name
}

// joined returns the networks, volumes and hosts of a container in its suite.
func (m *Manager) joined(k *kept, j *api.Joined) *containers.Hosted {
	h := &containers.Hosted{Hosts: j.Hosts}
	for _, n := range j.Networks {
		h.Networks = append(h.Networks, containers.Join{Network: m.network(k, n.Network), Aliases: n.Aliases})
	}
	for _, v := range j.Volumes {
		h.Volumes = append(h.Volumes, containers.VolumeMount{Volume: m.volume(k, v.Volume), Target: v.Target, ReadOnly: v.ReadOnly, NoCopy: v.NoCopy})
	}
	return h
}

// made returns a digest of a helper's description.
func made(h *api.Helper) string {
	b, err := json.Marshal(h)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8])
}

// Join returns a task's part of its suite, and the files for its container. Both are nil
// if the owner has no running suite of this name, or if the suite has nothing for this
// part. A suite that has only files does not change the task's network.
func (m *Manager) Join(o Owner, group, part, user string) (*containers.Hosted, []api.SuiteFile) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.suites[key{o.UID, group}]
	if s == nil || s.Down != nil || part == "" {
		return nil, nil
	}
	j, has := s.Suite.Tasks[part]
	if !has {
		return nil, nil
	}
	files := ownedBy(j.Files, user)
	if m.Host == nil {
		return nil, files
	}
	return m.joined(&s.kept, &j), files
}

// Has reports whether a container of this name is a helper of a suite.
func (m *Manager) Has(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.suites {
		for i := range s.Suite.Helpers {
			h := &s.Suite.Helpers[i]
			for n := range max(1, h.Replicas) {
				if m.containerName(&s.kept, h.Name, n+1) == name {
					return true
				}
			}
		}
	}
	return false
}
