package limits

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// cgroupRoot is the mount point of control groups of version 2.
const cgroupRoot = "/sys/fs/cgroup"

// GroupOf returns the control group of a process, as a path for the tool. The limit must
// be set on this group: a limit on a group above leaves the whole card visible to the
// container. The root group, and a group outside this process's view, are refused. root
// is the folder with /proc, usually "/".
func GroupOf(root string, pid int) (string, error) {
	b, err := os.ReadFile(filepath.Join(root, "proc", strconv.Itoa(pid), "cgroup"))
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(b)) {
		name, ok := strings.CutPrefix(strings.TrimRight(line, "\n"), "0::")
		if !ok {
			continue
		}
		if name == "/" || !path.IsAbs(name) || path.Clean(name) != name {
			return "", fmt.Errorf("process %d is in control group %q, which is no container's", pid, name)
		}
		return cgroupRoot + name, nil
	}
	return "", fmt.Errorf("process %d is in no control group of version 2", pid)
}
