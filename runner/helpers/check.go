package helpers

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"carma/internal/lazyregexp"
	"carma/runner/api"
)

var (
	goodName = lazyregexp.New(`^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,63}$`)
	goodHost = lazyregexp.New(`^[a-zA-Z0-9]([a-zA-Z0-9.-]{0,252}[a-zA-Z0-9])?$`)
	goodLine = lazyregexp.New(`^[a-zA-Z0-9_.-]+:[0-9a-fA-F:.\[\]]+$|^[a-zA-Z0-9_.-]+:host-gateway$`)
)

func wrong(format string, args ...any) error {
	return refusef(http.StatusUnprocessableEntity, format, args...)
}

// check refuses an invalid suite, and a suite that its owner may not have.
func (m *Manager) check(o Owner, name string, s *api.Suite) error {
	if !goodName().MatchString(name) {
		return wrong("%q cannot be the name of a suite: letters, digits, '_', '.' and '-' only, beginning with a letter or digit, at most 64", name)
	}
	c := checker{Manager: m, owner: o, networks: map[string]bool{}, volumes: map[string]bool{}, helpers: map[string]*api.Helper{}}
	for _, n := range s.Networks {
		if !goodName().MatchString(n.Name) || c.networks[n.Name] {
			return wrong("network %q: no name, or a second time", n.Name)
		}
		c.networks[n.Name] = true
	}
	for _, v := range s.Volumes {
		if !goodName().MatchString(v.Name) || c.volumes[v.Name] {
			return wrong("volume %q: no name, or a second time", v.Name)
		}
		c.volumes[v.Name] = true
	}
	for i := range s.Helpers {
		h := &s.Helpers[i]
		if !goodName().MatchString(h.Name) || c.helpers[h.Name] != nil {
			return wrong("helper %q: no name, or a second time", h.Name)
		}
		c.helpers[h.Name] = h
	}
	for i := range s.Helpers {
		h := &s.Helpers[i]
		if err := c.helper(h); err != nil {
			return wrong("helper %s: %v", h.Name, err)
		}
	}
	for part, j := range s.Tasks {
		if err := c.joined(&j, Covered{}); err != nil {
			return wrong("tasks %s: %v", part, err)
		}
	}
	if err := c.waits("the tasks", s.Waits); err != nil {
		return wrong("%v", err)
	}
	if m.Shown != nil && hasFiles(s) {
		if err := m.Shown(); err != nil {
			return wrong("secrets and configs: %v", err)
		}
	}
	if _, err := levels(s.Helpers); err != nil {
		return wrong("%v", err)
	}
	return nil
}

// checker checks the parts of one suite.
type checker struct {
	*Manager
	owner             Owner
	networks, volumes map[string]bool
	helpers           map[string]*api.Helper
}

// helper refuses options that a helper cannot have.
func (c *checker) helper(h *api.Helper) error {
	if err := onlyContainer(&h.Container); err != nil {
		return err
	}
	if err := c.joined(&h.Joined, coveredIn(h)); err != nil {
		return err
	}
	if err := c.within(h); err != nil {
		return err
	}
	if err := c.user(h); err != nil {
		return err
	}
	if _, _, err := restart(h.Restart); err != nil {
		return err
	}
	if h.Hostname != "" && !goodHost().MatchString(h.Hostname) {
		return fmt.Errorf("hostname %q: letters, digits, '.' and '-' only", h.Hostname)
	}
	if h.Health != nil && len(h.Health.Test) > 0 && !slices.Contains([]string{"NONE", "CMD", "CMD-SHELL"}, h.Health.Test[0]) {
		return fmt.Errorf("the check of its health begins with %q; write CMD, CMD-SHELL or NONE", h.Health.Test[0])
	}
	for _, p := range h.Ports {
		switch {
		case h.Replicas > 1 && p.Host > 0:
			return fmt.Errorf("port %d: %d replicas cannot all have it; leave the port of the host out", p.Host, h.Replicas)
		case p.Host > 0 && p.Host < 1024 && c.owner.Ordinary():
			return fmt.Errorf("port %d: ports below 1024 are root's; write one from 1024 on, or only the container's", p.Host)
		}
	}
	if len(h.Ports) > 0 && c.Closed {
		return fmt.Errorf("port %d: this daemon's containers have no network to the outside (--network none)", h.Ports[0].Container)
	}
	if err := harmless(h); err != nil {
		return err
	}
	return c.waits(h.Name, h.Waits)
}

// onlyContainer refuses fields for GPUs and queues.
func onlyContainer(s *api.Submit) error {
	only := api.Submit{
		Image: s.Image, Command: s.Command, Entrypoint: s.Entrypoint, Env: s.Env, Mounts: s.Mounts, User: s.User, Labels: s.Labels,
		HostMem: s.HostMem, HostReserve: s.HostReserve, CPUs: s.CPUs, CPUsReserve: s.CPUsReserve, StopGrace: s.StopGrace, Pull: s.Pull,
		ContainerOptions: api.ContainerOptions{WorkDir: s.WorkDir, ShmSize: s.ShmSize, Pids: s.Pids},
	}
	if reflect.DeepEqual(only, *s) {
		return nil
	}
	a, b := reflect.ValueOf(only), reflect.ValueOf(*s)
	for _, f := range reflect.VisibleFields(a.Type()) {
		if !f.Anonymous && !reflect.DeepEqual(a.FieldByIndex(f.Index).Interface(), b.FieldByIndex(f.Index).Interface()) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			return fmt.Errorf("%s is for tasks; a helper has no GPU and is in no queue", name)
		}
	}
	return nil
}

// joined checks a container's part of the suite, and that nothing covers paths in it.
func (c *checker) joined(j *api.Joined, covered Covered) error {
	for _, n := range j.Networks {
		if !c.networks[n.Network] {
			return fmt.Errorf("no network %s in this suite", n.Network)
		}
		for _, a := range n.Aliases {
			if !goodName().MatchString(a) {
				return fmt.Errorf("%q cannot be a name in a network", a)
			}
		}
	}
	for _, v := range j.Volumes {
		if v.Volume != "" && !c.volumes[v.Volume] {
			return fmt.Errorf("no volume %s in this suite", v.Volume)
		}
		if !filepath.IsAbs(v.Target) || filepath.Clean(v.Target) == "/" {
			return fmt.Errorf("volume %s: %q is no folder in the container", v.Volume, v.Target)
		}
	}
	if err := CheckFiles(j.Files, covered.withVolumes(j)); err != nil {
		return err
	}
	for _, line := range j.Hosts {
		if !goodLine().MatchString(line) {
			return fmt.Errorf("host %q: write name:address", line)
		}
	}
	return nil
}

// within checks that the helper whose network h shares is one container with its own
// network.
func (c *checker) within(h *api.Helper) error {
	if h.Within == "" {
		return nil
	}
	of := c.helpers[h.Within]
	switch {
	case of == nil || of == h:
		return fmt.Errorf("it shares the network of %s, and there is no such helper", h.Within)
	case of.Within != "":
		return fmt.Errorf("it shares the network of %s, which has none of its own; name %s", h.Within, of.Within)
	case of.Replicas > 1:
		return fmt.Errorf("it shares the network of %s, which has %d containers", h.Within, of.Replicas)
	case len(h.Networks)+len(h.Hosts)+len(h.Ports) > 0 || h.Hostname != "":
		return fmt.Errorf("it shares the network of %s; networks, hosts, ports and hostname are those of %s", h.Within, h.Within)
	}
	return nil
}

// waits checks the conditions before a helper or the tasks.
func (c *checker) waits(what string, list []api.HelperWait) error {
	for _, w := range list {
		if c.helpers[w.Helper] == nil {
			return fmt.Errorf("%s: it waits for %s, and there is no such helper", what, w.Helper)
		}
	}
	return nil
}

// user protects the files of other users. A process that is another user in its container
// can read and write mounted files as that user, so a helper with a folder of the host
// must run as its owner.
func (c *checker) user(h *api.Helper) error {
	if !c.owner.Ordinary() {
		return nil
	}
	own := fmt.Sprintf("%d:%d", c.owner.UID, c.owner.GID)
	if len(h.Container.Mounts) > 0 {
		switch {
		case !slices.Contains([]string{"", own, strconv.Itoa(c.owner.UID)}, h.Container.User):
			return fmt.Errorf("user %s: a helper with a folder of the host runs as you, %s; use a volume, or leave the user out", h.Container.User, own)
		case len(h.Groups) > 0:
			return fmt.Errorf("groups %s: a helper with a folder of the host has only your own", strings.Join(h.Groups, ", "))
		}
		return nil
	}
	if c.Root == nil {
		return nil
	}
	if root := c.Root(); enterable(root) {
		return fmt.Errorf("it runs as the users of its image, and everybody can enter the engine's folder %s, where a program of such a user could be left; an administrator can chmod 0710 it, or write user: %q", root, own)
	}
	return nil
}

// enterable reports whether other users can reach the files of containers and
// volumes on the machine.
func enterable(root string) bool {
	if root == "" || !filepath.IsAbs(root) {
		return false
	}
	for dir := root; ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil || info.Mode().Perm()&1 == 0 {
			return false // the folder does not exist here, so the engine's files are on another machine
		}
		if dir == "/" {
			return true
		}
	}
}

// restart parses the restart policy of a helper.
func restart(text string) (when string, tries int, err error) {
	policy, limit, has := strings.Cut(text, ":")
	switch policy {
	case "", "no":
		if !has {
			return "", 0, nil
		}
	case "always", "unless-stopped":
		if !has {
			return "always", 0, nil
		}
	case "on-failure":
		if !has {
			return policy, 0, nil
		}
		if n, err := strconv.Atoi(limit); err == nil && n >= 0 && n <= 1e6 {
			return policy, n, nil
		}
	}
	return "", 0, fmt.Errorf("restart %q; write no, always, unless-stopped, on-failure or on-failure:3", text)
}
