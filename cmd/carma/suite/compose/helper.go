package compose

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/compose-spec/compose-go/v2/types"

	"carma/runner/api"
)

// helperExtension lists the keys that x-carma of a helper may have. They set the helper's
// share of the machine.
var helperExtension = []string{"cpus", "cpus-reserve", "host-mem", "host-reserve", "pids", "shm-size", "pull", "stop-grace"}

// addHelper adds a service that runs beside the tasks.
func (t *translator) addHelper(s *Suite, c types.ServiceConfig) {
	service := t.common(c)
	h := &api.Helper{Name: c.Name, Replicas: service.Replicas}
	service.Helper = h
	r := &service.Submit
	if t.lonely(c, &service) {
		return
	}
	t.words(c, r)
	t.names(c, r)
	t.runs(c, h)
	h.Joined = t.volumes(c, &service)
	t.files(c, &h.Joined)
	h.Networks = t.joins(c)
	t.within(c, h)
	t.build(c, &service)
	t.before(c, h)
	t.limits(c, r)
	t.again(c, h)
	t.ports(c, h)
	t.health(c, h)
	t.powers(c, h)
	t.extension(c, &service)
	r.User = c.User
	t.wall(&service)
	s.Helpers = append(s.Helpers, service)
}

// lonely checks the number of a helper's containers. It returns true if the helper gets
// no container.
func (t *translator) lonely(c types.ServiceConfig, s *Service) bool {
	if n := s.Replicas; n < 0 || n > api.MaxHelpers {
		t.refuseAt(c.Name, fmt.Sprintf("%d replicas; a helper can have from 0 to %d", n, api.MaxHelpers), "scale")
		return true
	}
	if c.Deploy != nil && strings.HasPrefix(c.Deploy.Mode, "global") {
		t.warnAt(c.Name, "there is one machine; it runs once", "deploy", "mode")
		s.Replicas, s.Helper.Replicas = 1, 1
	}
	return s.Replicas == 0
}

// runs reads the settings with which the helper's container runs.
func (t *translator) runs(c types.ServiceConfig, h *api.Helper) {
	h.Hostname, h.StopSignal, h.ReadOnly, h.Terminal, h.Stdin = c.Hostname, c.StopSignal, c.ReadOnly, c.Tty, c.StdinOpen
	h.Init = c.Init != nil && *c.Init
	h.Groups, h.Tmpfs = c.GroupAdd, append(h.Tmpfs, c.Tmpfs...)
	if len(c.Sysctls) > 0 {
		h.Sysctls = maps.Clone(map[string]string(c.Sysctls))
	}
	for _, name := range slices.Sorted(maps.Keys(c.Ulimits)) {
		u := c.Ulimits[name]
		h.Ulimits = append(h.Ulimits, api.HelperUlimit{Name: name, Soft: int64(cmp.Or(u.Soft, u.Single)), Hard: int64(cmp.Or(u.Hard, u.Single))})
	}
	switch c.Ipc {
	case "", "private", "shareable":
	case "host":
		t.warnAt(c.Name, "a helper has its own; for a larger /dev/shm write shm_size: 8g", "ipc")
	default:
		t.refuseAt(c.Name, "a helper has its own; for a larger /dev/shm write shm_size: 8g", "ipc")
	}
	t.platform(c)
	switch a := gpusOf(c); {
	case a.asks && isTensorBoard(c):
		t.warnAt(c.Name, "TensorBoard needs no GPU, so it is a helper without one beside the tasks; x-carma: {task: true} makes it a task", a.keys...)
	case isNVIDIA(c.Runtime) && a.none:
		t.warnAt(c.Name, "it asks for no GPU, so it runs in the engine's ordinary runtime", "runtime")
	case c.Runtime != "" && c.Runtime != "runc":
		t.refuseAt(c.Name, "a helper runs in the engine's ordinary runtime", "runtime")
	case a.looks != "":
		t.warnAt(c.Name, a.looks+" gives a helper no GPU; if it needs one, write gpus: [{count: 1}], which makes it a task", "environment")
	}
	t.security(c)
}

// before reads the helpers that must start before this helper.
func (t *translator) before(c types.ServiceConfig, h *api.Helper) {
	for _, d := range t.comesAfter(c) {
		if t.isTask[d.of] {
			t.warnAt(c.Name, "helpers start before the tasks; it does not wait for "+d.of, "depends_on")
			continue
		}
		h.Waits = append(h.Waits, api.HelperWait{Helper: d.of, Condition: d.condition})
	}
}

// again reads the helper's restart policy. As in Compose, the keys below deploy take
// precedence.
func (t *translator) again(c types.ServiceConfig, h *api.Helper) {
	h.Restart = c.Restart
	if c.Deploy == nil || c.Deploy.RestartPolicy == nil {
		return
	}
	p := c.Deploy.RestartPolicy
	switch p.Condition {
	case "", "any":
		h.Restart = "always"
	case "none":
		h.Restart = "no"
	default:
		h.Restart = p.Condition
		if p.MaxAttempts != nil {
			h.Restart += ":" + strconv.FormatUint(*p.MaxAttempts, 10)
		}
	}
}

// ports reads the helper's published ports. They are published only on 127.0.0.1.
func (t *translator) ports(c types.ServiceConfig, h *api.Helper) {
	for _, p := range c.Ports {
		if p.HostIP != "" && p.HostIP != "0.0.0.0" && p.HostIP != "::" && !strings.HasPrefix(p.HostIP, "127.") && p.HostIP != "::1" && p.HostIP != "localhost" {
			t.warnAt(c.Name, fmt.Sprintf("port %d is reached at 127.0.0.1 only, not at %s", p.Target, p.HostIP), "ports")
		}
		if p.Protocol != "" && p.Protocol != "tcp" && p.Protocol != "udp" {
			t.refuseAt(c.Name, p.Protocol+" is not published; tcp and udp are", "ports")
			continue
		}
		host := 0
		if first, _, _ := strings.Cut(p.Published, "-"); first != "" {
			host, _ = strconv.Atoi(first)
		}
		switch {
		case host > 0 && host < 1024 && t.options.UID != 0:
			t.warnAt(c.Name, fmt.Sprintf("port %d: ports below 1024 are root's; a free one is used, which carma suite ps shows", host), "ports")
			host = 0
		case host > 0 && h.Replicas > 1:
			t.warnAt(c.Name, fmt.Sprintf("port %d: %d replicas cannot all have it; free ones are used, which carma suite ps shows", host, h.Replicas), "ports")
			host = 0
		}
		h.Ports = append(h.Ports, api.HelperPort{Container: int(p.Target), Host: host, Protocol: cmp.Or(p.Protocol, "tcp")})
	}
}

// health reads the helper's health check.
func (t *translator) health(c types.ServiceConfig, h *api.Helper) {
	k := c.HealthCheck
	if k == nil {
		return
	}
	if k.Disable || len(k.Test) > 0 && k.Test[0] == "NONE" {
		h.Health = &api.HelperHealth{Test: []string{"NONE"}}
		return
	}
	h.Health = &api.HelperHealth{Test: k.Test}
	for to, from := range map[*time.Duration]*types.Duration{&h.Health.Interval: k.Interval, &h.Health.Timeout: k.Timeout, &h.Health.StartPeriod: k.StartPeriod} {
		if from != nil {
			*to = time.Duration(*from)
		}
	}
	if k.Retries != nil {
		h.Health.Retries = int(min(*k.Retries, 1e6))
	}
}

// usual lists capabilities that programs request but do not need: the engine's default,
// and the capability to set priorities.
var usual = []string{"AUDIT_WRITE", "MKNOD", "NET_RAW", "SETFCAP", "SYS_NICE"}

// powers reads the helper's capabilities.
func (t *translator) powers(c types.ServiceConfig, h *api.Helper) {
	h.CapDrop, h.CapAdd = c.CapDrop, t.capabilities(c, slices.Concat(api.HelperCapabilities, api.MoreCapabilities))
}

// capabilities returns the capabilities of cap_add that may be given. It warns about
// other capabilities in the engine's default, and refuses the rest.
func (t *translator) capabilities(c types.ServiceConfig, may []string) (given []string) {
	harmless := slices.Concat(usual, api.HelperCapabilities, api.MoreCapabilities)
	for _, name := range c.CapAdd {
		switch name := strings.TrimPrefix(strings.ToUpper(name), "CAP_"); {
		case slices.Contains(may, name):
			given = append(given, name)
		case slices.Contains(harmless, name):
			t.warnAt(c.Name, name+" is not given; most programs go on without", "cap_add")
		case len(may) == 0:
			t.refuseAt(c.Name, name+" reaches out of the container; tasks have no capabilities", "cap_add")
		default:
			t.refuseAt(c.Name, name+" reaches out of the container; these can be had: "+strings.Join(may, ", "), "cap_add")
		}
	}
	return given
}
