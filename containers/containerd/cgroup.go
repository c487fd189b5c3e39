package containerd

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"
)

const cgroupRoot = "/sys/fs/cgroup"

// unified reports whether the machine has cgroup version 2 only.
func unified() bool {
	_, err := os.Stat(filepath.Join(cgroupRoot, "cgroup.controllers"))
	return err == nil
}

// controls reports whether the kernel can limit this resource.
func controls(resource string) bool {
	if b, err := os.ReadFile(filepath.Join(cgroupRoot, "cgroup.controllers")); err == nil {
		return slices.Contains(strings.Fields(string(b)), resource)
	}
	_, err := os.Stat(filepath.Join(cgroupRoot, resource, "cgroup.procs"))
	return err == nil
}

// swapLimits reports whether the kernel can limit swap. With cgroup version 1 without
// swap accounting, such a limit makes the container fail.
func swapLimits() bool {
	if unified() {
		return true
	}
	_, err := os.Stat(filepath.Join(cgroupRoot, "memory", "memory.memsw.limit_in_bytes"))
	return err == nil
}

// oomKilled reports whether the kernel has killed a process of a container because memory
// ran out. It reads the container's control group, which exists until the task is
// deleted.
func oomKilled(spec *specs.Spec) bool {
	if spec == nil || spec.Linux == nil || spec.Linux.CgroupsPath == "" {
		return false
	}
	file := filepath.Join(cgroupRoot, "memory", spec.Linux.CgroupsPath, "memory.oom_control")
	if unified() {
		file = filepath.Join(cgroupRoot, spec.Linux.CgroupsPath, "memory.events")
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(b)) {
		if n, ok := strings.CutPrefix(strings.TrimSpace(line), "oom_kill "); ok {
			return n != "0"
		}
	}
	return false
}
