package containerstest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"carma/containers"
)

// parker returns the driver as a Parker, and a record of its calls of BeforeGone.
func (s *suite) parker() (containers.Parker, *leavings) {
	s.Helper()
	h, ok := s.d.(containers.Parker)
	if !ok {
		s.Skip("the driver parks no containers")
	}
	if err := h.CanPark(); err != nil {
		s.Skipf("containers cannot be parked here: %v", err)
	}
	l := &leavings{}
	l.expected = h.BeforeGone(l.leave)
	return h, l
}

// leavings records the containers reported by BeforeGone, and whether their control
// groups still existed.
type leavings struct {
	expected bool // this engine calls BeforeGone

	mu     sync.Mutex
	groups []string // of the watched container
	seen   map[string]bool
}

func (l *leavings) watch(pid int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.groups = groupFolders(pid)
}

func (l *leavings) leave(_ context.Context, id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen == nil {
		l.seen = map[string]bool{}
	}
	there := len(l.groups) == 0
	for _, dir := range l.groups {
		if _, err := os.Stat(dir); err == nil {
			there = true
		}
	}
	l.seen[id] = there
}

func (l *leavings) check(id string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch there, told := l.seen[id]; {
	case l.expected && !told:
		return errors.New("nothing was called before it was gone")
	case l.expected && !there:
		return fmt.Errorf("its control groups %q were gone when it was called", l.groups)
	}
	return nil
}

// groupFolders returns the folders of a process's control groups, or none for a process
// of another machine.
func groupFolders(pid int) (out []string) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return nil
	}
	for line := range strings.Lines(strings.TrimSpace(string(b))) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) < 3 || f[2] == "/" {
			continue
		}
		for _, controller := range []string{f[1], "unified"} {
			dir := filepath.Join("/sys/fs/cgroup", controller, f[2])
			if _, err := os.Stat(dir); err == nil {
				out = append(out, dir)
			}
		}
	}
	return out
}

func testPark(t *testing.T, s *suite) {
	h, leaving := s.parker()
	folder := t.TempDir()
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	spec := s.spec("read:/data/in", "out:two words", "env:A", "env:IMAGE", "dir", "user", "exit:3")
	spec.Park = true
	spec.Env = []string{"A=1=2"}
	spec.Mounts = []containers.Mount{{Source: folder, Target: "/data", ReadOnly: true}}
	id := s.create(spec)
	pid, err := h.Park(s.ctx, id)
	if err != nil || pid <= 0 {
		t.Fatalf("park: process %d, %v", pid, err)
	}
	leaving.watch(pid)
	if again, err := h.Park(s.ctx, id); err != nil || again != pid {
		t.Errorf("park again: process %d, %v, want %d", again, err, pid)
	}
	// The program prints "refused" if it runs before this file is written.
	if err := os.WriteFile(filepath.Join(folder, "in"), []byte("written while it was parked"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := s.d.Start(s.ctx, id); err != nil {
		t.Fatal(err)
	}
	if exit := s.wait(id); exit.Code != 3 {
		t.Errorf("exit = %+v, want code 3", exit)
	}
	s.equal("output", s.logs(id, time.Time{}, false).lines(containers.Stdout),
		[]string{"written while it was parked", "two words", "A=1=2", ToolEnv, ToolWorkDir, ToolUser})
	if again, err := h.Park(s.ctx, id); err != nil || again != 0 {
		t.Errorf("park after its end: process %d, %v, want none", again, err)
	}
	if err := leaving.check(id); err != nil {
		t.Errorf("after its end: %v", err)
	}

	// A container that may be parked also runs without being parked, here with
	// the image's command.
	spec = s.spec()
	spec.Park = true
	s.equal("not parked", s.output(spec), []string{strings.TrimPrefix(ToolDefault, "out:")})
	spec = s.spec()
	spec.Park, spec.Command, spec.Entrypoint = true, nil, []string{ToolPath, "out:alone"}
	s.equal("entrypoint without the image's command", s.output(spec), []string{"alone"})
}

func testParkOnly(t *testing.T, s *suite) {
	h, leaving := s.parker()
	folder := t.TempDir()
	if err := os.Chmod(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	spec := s.spec("write:/data/ran")
	spec.Park = true
	spec.Mounts = []containers.Mount{{Source: folder, Target: "/data"}}
	id := s.create(spec)
	pid, err := h.Park(s.ctx, id)
	if err != nil || pid <= 0 {
		t.Fatalf("park: process %d, %v", pid, err)
	}
	leaving.watch(pid)
	if err := s.d.Remove(s.ctx, id); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(folder, "ran")); err == nil {
		t.Error("the program ran without a start")
	}
	if err := leaving.check(id); err != nil {
		t.Errorf("after its removal: %v", err)
	}
	if list := s.list(); len(list) != 0 {
		t.Errorf("after its removal there are %+v", list)
	}
}
