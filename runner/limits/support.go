package limits

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// firstDriver is the first version of the driver with limits.
const firstDriver = 615

// Support describes whether this machine's driver can limit control groups.
type Support struct {
	// Why describes the missing part, and Fix the way to fix it. Each is a sentence, or
	// empty if limits can be set.
	Why, Fix string
	// Driver is the driver's version, or empty if unknown.
	Driver string
	// Kernel is set if the kernel's dmem controller (Linux 6.14 and later) enforces the
	// limits, not the driver itself.
	Kernel bool
}

// OK reports whether limits can be set.
func (s Support) OK() bool { return s.Why == "" }

// Detect determines whether a process of user uid can set limits on this machine. root is
// the folder with /sys, usually "/".
func Detect(ctx context.Context, t Tool, root string, uid int) Support {
	var s Support
	if _, err := exec.LookPath(t.path()); err != nil {
		s.Why, s.Fix = t.path()+" is not in PATH", "install the NVIDIA driver's utilities"
		return s
	}
	version, err := t.Version(ctx)
	s.Driver = version
	major, _, _ := strings.Cut(version, ".")
	if n, numErr := strconv.Atoi(major); err == nil && numErr == nil && n < firstDriver {
		s.Why, s.Fix = fmt.Sprintf("driver %s is too old, %d is the first that has limits", version, firstDriver), "install a newer NVIDIA driver"
		return s
	}
	if err := t.Knows(ctx); err != nil {
		s.Why, s.Fix = "the driver's tool has no limits: "+err.Error(), fmt.Sprintf("install NVIDIA driver %d or newer", firstDriver)
		return s
	}
	if _, err := os.Stat(filepath.Join(root, cgroupRoot, "cgroup.controllers")); err != nil {
		s.Why, s.Fix = "the machine does not have cgroup version 2 at "+cgroupRoot, "boot with systemd.unified_cgroup_hierarchy=1"
		return s
	}
	if uid != 0 {
		s.Why, s.Fix = "only root can set limits", "run carma daemon as root"
		return s
	}
	_, err = os.Stat(filepath.Join(root, cgroupRoot, "dmem.capacity"))
	s.Kernel = err == nil
	return s
}
