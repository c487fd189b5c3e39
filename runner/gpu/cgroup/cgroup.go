// Package cgroup returns the containers in which a process runs, from the names of its
// control groups. It reads /proc and asks no engine.
package cgroup

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// maxFile is the largest number of bytes read of one cgroup file. The kernel's own limit is
// a path of 4096 bytes per hierarchy; there are at most 16 hierarchies.
const maxFile = 128 << 10

// Containers returns the IDs, or names, of the containers in which a process runs,
// innermost first for nested containers. It is empty for a process outside containers.
// root is the parent of /proc: "/".
//
// pid is the number in the caller's PID namespace. If there is no such process, the error
// wraps os.ErrNotExist.
func Containers(root string, pid int) ([]string, error) {
	f, err := os.Open(filepath.Join(root, "proc", strconv.Itoa(pid), "cgroup"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	ids, err := Parse(io.LimitReader(f, maxFile))
	if errors.Is(err, errGone) {
		return nil, fmt.Errorf("process %d: %w", pid, os.ErrNotExist)
	}
	return ids, err
}

// errGone is the error of reading the file of a process that has ended meanwhile.
var errGone = errors.New("no such process")

// Parse reads a /proc/PID/cgroup file, of version 1, 2 or both, and returns the
// containers that it names, innermost first. Hierarchies may differ in depth: a version 1
// controller that an engine does not use stays at the root. The hierarchy with the most
// containers counts.
func Parse(r io.Reader) ([]string, error) {
	var best []string
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 4096), maxFile)
	for lines.Scan() {
		// hierarchy-id:controllers:path; the path may contain colons.
		_, rest, ok := strings.Cut(lines.Text(), ":")
		if !ok {
			continue
		}
		_, path, ok := strings.Cut(rest, ":")
		if !ok {
			continue
		}
		if ids := inPath(path); len(ids) > len(best) {
			best = ids
		}
	}
	if err := lines.Err(); err != nil {
		if strings.Contains(err.Error(), "no such process") {
			return nil, errGone
		}
		return nil, fmt.Errorf("cgroup file: %w", err)
	}
	return best, nil
}

// inPath returns the containers in a control group's path, innermost first, without
// duplicates.
func inPath(path string) []string {
	parts := strings.Split(path, "/")
	var ids []string
	for i := len(parts) - 1; i >= 0; i-- {
		id := inPart(parts, i)
		if id != "" && (len(ids) == 0 || ids[len(ids)-1] != id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// engines lists prefixes of a container's ID in a systemd scope or cgroupfs folder:
// Docker, containerd's and CRI-O's Kubernetes plugins, Podman.
var engines = []string{"docker-", "cri-containerd-", "crio-", "libpod-", "nerdctl-", "containerd-"}

// beside lists prefixes of folders that engines make next to a container's, for example
// for its monitor. Processes in them belong to no task.
var beside = []string{"crio-conmon-", "libpod-conmon-"}

// inPart returns the container in one component of a path, or "".
func inPart(parts []string, i int) string {
	part := parts[i]
	for _, p := range beside {
		if strings.HasPrefix(part, p) {
			return ""
		}
	}
	name := strings.TrimSuffix(part, ".scope")
	// systemd's driver of containerd and Kubernetes: slice:prefix:id.
	if fields := strings.Split(name, ":"); len(fields) == 3 && fields[2] != "" && fields[1] != "" {
		return fields[2]
	}
	for _, p := range engines {
		if id, ok := strings.CutPrefix(name, p); ok && plausible(id) {
			return id
		}
	}
	if isHex64(name) {
		return name
	}
	// containerd's own form: /NAMESPACE/ID; IDs may be any name. Only Docker's, carma's and
	// containerd's default namespace are recognized.
	if i > 0 && plausible(name) && name == part {
		switch parts[i-1] {
		case "docker", "carma", "default", "libpod", "actions_job", "ecs":
			return name
		}
	}
	return ""
}

// plausible reports whether engines accept id as a container's ID. Slices and services
// belong to systemd.
func plausible(id string) bool {
	if len(id) < 2 || len(id) > 128 {
		return false
	}
	for _, suffix := range []string{".slice", ".service", ".scope", ".mount"} {
		if strings.HasSuffix(id, suffix) {
			return false
		}
	}
	for i, c := range id {
		alnum := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !alnum && (i == 0 || c != '-' && c != '_' && c != '.') {
			return false
		}
	}
	return true
}

func isHex64(s string) bool {
	if len(s) != 64 {
		return false
	}
	for _, c := range s {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// initNamespace is the inode of the machine's first PID namespace
// (PROC_PID_INIT_INO in the kernel's include/linux/proc_ns.h).
const initNamespace = "pid:[4026531836]"

// SeesHost reports whether the caller runs in the machine's initial PID namespace. A
// GPU's driver reports PIDs of that namespace, and Containers can find them only there.
func SeesHost(root string) bool {
	ns, err := os.Readlink(filepath.Join(root, "proc", "self", "ns", "pid"))
	return err != nil || ns == initNamespace
}

// MemoryOf returns the folder of the control group with the memory of a container, found
// through one of the container's processes, or "" if none can be read. name is the
// container's name as returned by Containers. It supports versions 1 and 2.
func MemoryOf(root string, pid int, name string) string {
	dir, _ := groupOf(root, pid, name, "memory", "memory.stat", "memory.stat")
	return dir
}

// FreezerOf returns the folder of the control group that freezes a container, like
// MemoryOf. second is set for version 2 (cgroup.freeze), otherwise it is version 1
// (freezer.state).
func FreezerOf(root string, pid int, name string) (dir string, second bool) {
	return groupOf(root, pid, name, "freezer", "freezer.state", "cgroup.freeze")
}

// groupOf returns the folder of a container's control group for a controller, and whether
// it has version 2. A file identifies each version.
func groupOf(root string, pid int, name, controller, first, second string) (string, bool) {
	b, err := os.ReadFile(filepath.Join(root, "proc", strconv.Itoa(pid), "cgroup"))
	if err != nil {
		return "", false
	}
	for line := range strings.Lines(string(b)) {
		parts := strings.SplitN(strings.TrimRight(line, "\n"), ":", 3)
		if len(parts) != 3 {
			continue
		}
		base, file := "sys/fs/cgroup", second
		switch {
		case slices.Contains(strings.Split(parts[1], ","), controller):
			base, file = base+"/"+controller, first
		case parts[0] != "0" || parts[1] != "":
			continue
		}
		dir := filepath.Join(root, base, upTo(parts[2], name))
		if _, err := os.Stat(filepath.Join(dir, file)); err == nil && inPath(parts[2]) != nil {
			return dir, file == second && base == "sys/fs/cgroup"
		}
	}
	return "", false
}

// upTo cuts a control group's path after the component of a container, because the
// container may have made groups below its own.
func upTo(path, name string) string {
	parts := strings.Split(path, "/")
	for i := range parts {
		if inPart(parts, i) == name {
			return strings.Join(parts[:i+1], "/")
		}
	}
	return path
}
