package suspend

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"carma/runner/gpu/cgroup"
)

// Container is the caller's data about a task's container.
type Container struct {
	// ID is the container's name in control groups, as package cgroup returns it.
	ID string
	// PIDs are the container's processes, by their numbers on the host.
	PIDs []int
	// Leave is the folder through which the task can be asked to vacate its GPUs (package
	// leave), or empty if there is none.
	Leave string
}

// Process is a process of a container. Start distinguishes the process from a later one
// with the same number, and is its start time in clock ticks since the boot.
type Process struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"`
}

var (
	errEnded   = errors.New("the process has ended")
	errForeign = errors.New("not a process of the container")
)

// look finds a process and checks that it belongs to the container. The driver would
// accept any process of the machine, and even the number of a thread
// (cuda-checkpoint#41).
func (s *Suspender) look(c Container, pid int) (Process, error) {
	if pid <= 1 || !slices.Contains(c.PIDs, pid) {
		return Process{}, fmt.Errorf("process %d: %w", pid, errForeign)
	}
	p, err := readProcess(s.opt.Root, pid)
	if err != nil {
		return Process{}, err
	}
	if c.ID == "" {
		return p, nil
	}
	ids, err := cgroup.Containers(s.opt.Root, pid)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Process{}, errEnded
	case err != nil:
		return Process{}, fmt.Errorf("process %d: %w", pid, err)
	case !slices.Contains(ids, c.ID):
		return Process{}, fmt.Errorf("process %d: %w", pid, errForeign)
	}
	return p, nil
}

// there reports whether a process of the container still exists, or may exist.
func (s *Suspender) there(c Container, pid int) bool {
	_, err := s.look(c, pid)
	return !errors.Is(err, errEnded) && !errors.Is(err, errForeign)
}

// same checks that p still exists.
func (s *Suspender) same(c Container, p Process) error {
	now, err := s.look(c, p.PID)
	if err == nil && now.Start != p.Start {
		return errEnded
	}
	return err
}

// readProcess reads /proc/PID/stat. A zombie, which only waits for its parent, has ended.
func readProcess(root string, pid int) (Process, error) {
	dir := filepath.Join(root, "proc", strconv.Itoa(pid))
	text, err := os.ReadFile(filepath.Join(dir, "stat"))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return Process{}, errEnded
	}
	if err != nil {
		return Process{}, err
	}
	// "PID (NAME) STATE ..."; the name may contain any character. After it, the state is the
	// first field and the start the 20th (proc_pid_stat(5)).
	end := strings.LastIndexByte(string(text), ')')
	fields := strings.Fields(string(text[end+1:]))
	if end < 0 || len(fields) < 20 {
		return Process{}, fmt.Errorf("%s/stat is not of the known form", dir)
	}
	if fields[0] == "Z" || fields[0] == "X" {
		return Process{}, errEnded
	}
	started, err := strconv.ParseUint(fields[19], 10, 64)
	if err != nil {
		return Process{}, fmt.Errorf("%s/stat: %w", dir, err)
	}
	if leader, err := leaderOf(dir); err == nil && leader != pid {
		return Process{}, fmt.Errorf("%d is a thread of process %d: %w", pid, leader, errForeign)
	}
	return Process{PID: pid, Start: started}, nil
}

// ProcessOf returns a process of this machine, or false if it has ended.
func ProcessOf(pid int) (Process, bool) {
	p, err := readProcess("/", pid)
	return p, err == nil
}

// leaderOf returns the process that a thread belongs to.
func leaderOf(dir string) (int, error) {
	text, err := os.ReadFile(filepath.Join(dir, "status"))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if id, ok := strings.CutPrefix(line, "Tgid:"); ok {
			return strconv.Atoi(strings.TrimSpace(id))
		}
	}
	return 0, errors.New("no Tgid")
}

// FindContainer returns the container with one of names, with its processes. root has the
// machine's /proc.
func FindContainer(root string, names ...string) Container {
	c := Container{ID: names[0]}
	all, err := os.ReadDir(filepath.Join(root, "proc"))
	if err != nil {
		return c
	}
	for _, entry := range all {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		in, err := cgroup.Containers(root, pid)
		if err != nil {
			continue
		}
		if i := slices.IndexFunc(in, func(name string) bool { return slices.Contains(names, name) }); i >= 0 {
			c.ID = in[i]
			c.PIDs = append(c.PIDs, pid)
		}
	}
	return c
}
