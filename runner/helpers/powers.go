package helpers

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"carma/runner/api"
)

func capability(name string) string { return strings.TrimPrefix(strings.ToUpper(name), "CAP_") }

// capabilities returns the capabilities of a helper. It omits these of the engine's
// default capabilities: NET_RAW (it can pretend to be another container), MKNOD,
// AUDIT_WRITE, SETPCAP and SETFCAP.
func capabilities(h *api.Helper) []string {
	have := slices.Clone(api.HelperCapabilities)
	drop := func(name string) {
		have = slices.DeleteFunc(have, func(c string) bool { return name == "ALL" || c == name })
	}
	for _, name := range h.CapDrop {
		drop(capability(name))
	}
	for _, name := range h.CapAdd {
		if name = capability(name); !slices.Contains(have, name) {
			have = append(have, name)
		}
	}
	slices.Sort(have)
	return have
}

// ulimits may be set, because the container's own limits bound the same resources.
var ulimits = []string{"as", "core", "cpu", "data", "fsize", "locks", "memlock", "msgqueue", "nofile", "nproc", "rss", "sigpending", "stack"}

// sysctls are prefixes of the settings of the container's own namespaces.
var sysctls = []string{"net.", "kernel.msg", "kernel.sem", "kernel.shm", "fs.mqueue."}

// harmless refuses rights that have effects outside the container.
func harmless(h *api.Helper) error {
	for _, name := range h.CapAdd {
		if c, may := capability(name), slices.Concat(api.HelperCapabilities, api.MoreCapabilities); !slices.Contains(may, c) {
			return fmt.Errorf("capability %s reaches out of the container; these can be had: %s", c, strings.Join(may, ", "))
		}
	}
	for _, u := range h.Ulimits {
		if !slices.Contains(ulimits, u.Name) {
			return fmt.Errorf("limit %s cannot be set; these can: %s", u.Name, strings.Join(ulimits, ", "))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(h.Sysctls)) {
		if !slices.ContainsFunc(sysctls, func(p string) bool { return strings.HasPrefix(name, p) }) {
			return fmt.Errorf("sysctl %s is the whole machine's; those that begin with %s can be set", name, strings.Join(sysctls, ", "))
		}
	}
	return nil
}
