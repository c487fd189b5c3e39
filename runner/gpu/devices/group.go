package devices

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"carma/runner/gpu/cgroup"
)

// hierarchy is a mounted hierarchy of control groups that can have device rules.
type hierarchy struct {
	mount string // mount point of its root group
	// second is set for version 2, whose rules are BPF programs. Otherwise it is the devices
	// controller of version 1.
	second bool
}

// hierarchies returns the hierarchies mounted here with their root group. It returns none
// for a process in a container, which cannot see other groups.
func hierarchies() (list []hierarchy) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(text)) {
		// 30 25 0:26 / /sys/fs/cgroup/devices rw - cgroup cgroup rw,devices
		before, after, ok := strings.Cut(strings.TrimSpace(line), " - ")
		head, tail := strings.Fields(before), strings.Fields(after)
		if !ok || len(head) < 5 || len(tail) < 3 || head[3] != "/" {
			continue
		}
		first := tail[0] == "cgroup" && slices.Contains(strings.Split(tail[2], ","), "devices")
		if h := (hierarchy{mount: head[4], second: tail[0] == "cgroup2"}); first || h.second {
			if !slices.ContainsFunc(list, func(other hierarchy) bool { return other.second == h.second }) {
				list = append(list, h)
			}
		}
	}
	return list
}

// group is a control group in one hierarchy.
type group struct {
	dir    string
	second bool
}

// groups returns the control groups of a process that can have device rules. text is the
// content of the process's /proc/PID/cgroup.
func groups(mounted []hierarchy, text []byte) (list []group) {
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimRight(line, "\n"), ":", 3)
		if len(parts) != 3 || !filepath.IsAbs(parts[2]) || filepath.Clean(parts[2]) != parts[2] {
			continue
		}
		second := parts[0] == "0" && parts[1] == ""
		if !second && !slices.Contains(strings.Split(parts[1], ","), "devices") {
			continue
		}
		for _, h := range mounted {
			if h.second == second {
				list = append(list, group{filepath.Join(h.mount, parts[2]), second})
			}
		}
	}
	return list
}

// innermost reports whether a /proc/PID/cgroup file names a container as the innermost
// one.
func innermost(text []byte, names []string) bool {
	ids, err := cgroup.Parse(bytes.NewReader(text))
	return err == nil && len(ids) > 0 && slices.Contains(names, ids[0])
}

// Rules returns a text that changes when a container's device rules change, identified by
// one of its processes. It costs a few system calls. The text is empty if the rules
// cannot be read.
func (*Checker) Rules(pid int, names []string) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil || !innermost(text, names) {
		return ""
	}
	var all strings.Builder
	for _, g := range groups(hierarchies(), text) {
		rules, err := g.rules()
		if err != nil {
			return ""
		}
		fmt.Fprintf(&all, "%s\n%s\n", g.dir, rules)
	}
	return all.String()
}

// rules returns the rules of version 1, or the ids of the programs that are the rules of
// version 2.
func (g group) rules() (string, error) {
	if !g.second {
		b, err := os.ReadFile(filepath.Join(g.dir, "devices.list"))
		return string(b), err
	}
	dir, err := unix.Open(g.dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(dir)
	ids, err := programs(dir)
	return fmt.Sprint(ids), err
}

// mostPrograms is the largest number of a group's programs that are read.
const mostPrograms = 64

// programs returns the ids of the device programs attached to a group of version 2.
func programs(dir int) ([]uint32, error) {
	var ids [mostPrograms]uint32
	attr := struct { // union bpf_attr of BPF_PROG_QUERY
		target, kind, flags, attached uint32
		ids                           uint64
		count                         uint32
		_                             [36]byte
	}{target: uint32(dir), kind: unix.BPF_CGROUP_DEVICE, ids: uint64(uintptr(unsafe.Pointer(&ids))), count: mostPrograms}
	_, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_PROG_QUERY, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
	if errno != 0 {
		return nil, errno
	}
	return ids[:min(attr.count, mostPrograms)], nil
}

// errNoRoom means that the child would use the last processes that the container may
// have.
var errNoRoom = errors.New("the container has no room for another process")

// roomLeast is the number of additional processes for which a container must have room
// before a child enters its control group. The child's threads count for a moment.
const roomLeast = 32

// enterable returns an error if a process that enters a group of version 2 could be
// frozen in it, or could prevent the container from making a process.
func (g group) enterable() error {
	if !g.second {
		return nil // this hierarchy has only device rules
	}
	if events, err := os.ReadFile(filepath.Join(g.dir, "cgroup.events")); err == nil && bytes.Contains(events, []byte("frozen 1")) {
		return errors.New("the container is frozen")
	}
	if asked, err := os.ReadFile(filepath.Join(g.dir, "cgroup.freeze")); err == nil && bytes.HasPrefix(asked, []byte("1")) {
		return errors.New("the container is being frozen")
	}
	var now, most int64
	if b, err := os.ReadFile(filepath.Join(g.dir, "pids.current")); err == nil {
		_, _ = fmt.Sscan(string(b), &now)
	}
	b, err := os.ReadFile(filepath.Join(g.dir, "pids.max"))
	if err != nil {
		return nil // no limit
	}
	if n, _ := fmt.Sscan(string(b), &most); n == 1 && now+roomLeast > most {
		return errNoRoom
	}
	return nil
}

// procs opens the file of a group through which processes enter it.
func (g group) procs() (int, error) {
	return unix.Open(filepath.Join(g.dir, "cgroup.procs"), unix.O_WRONLY|unix.O_CLOEXEC, 0)
}
