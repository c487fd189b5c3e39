//go:build e2e

package test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"carma/runner/api"
	"carma/runner/mounts"
)

// races is how many tasks are launched while the paths they mount are swapped:
// few in CI, 1,000 in make test-security.
func races() int {
	if n, err := strconv.Atoi(os.Getenv("TEST_SECURITY_RACES")); err == nil {
		return n
	}
	return 50
}

// attacker is a user of no passwd file, and her folders: home, where she may
// mount from, and outside, where she may not, though all may read it.
type attacker struct {
	*server
	id            uint32
	home, outside string
}

// newAttacker prepares the folders; the daemon is started.
func newAttacker(s *server) *attacker {
	t := s.t
	t.Helper()
	a := &attacker{server: s, id: 12346, home: filepath.Join(s.root, "home"), outside: filepath.Join(s.root, "outside")}
	s.flags = append(s.flags, "--allowed-mounts", a.home)
	s.borrowCommand()
	for dir, text := range map[string]string{a.home: "", a.home + "/real": "inside", a.outside: "OUTSIDE"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(dir, int(a.id), int(a.id)); err != nil {
			t.Fatal(err)
		}
		if text != "" {
			if err := os.WriteFile(dir+"/marker", []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.start()
	return a
}

// run is a command of hers.
func (a *attacker) run(args ...string) result {
	a.t.Helper()
	return a.begin(&syscall.Credential{Uid: a.id, Gid: a.id}, args...).wait()
}

// TestSecurityMountRace: the owner of a path swaps it, and folders above it,
// while tasks that mount it are launched, and the daemon is killed meanwhile. No
// container ever sees what lies outside.
func TestSecurityMountRace(t *testing.T) {
	t.Parallel()
	needRoot(t)
	mountRace(newAttacker(newServer(t)))
}

func mountRace(a *attacker) {
	t := a.t
	t.Helper()
	at := func(p string) string { return filepath.Join(a.home, p) }
	for link, to := range map[string]string{"good": at("real"), "bad": a.outside, "parent": a.home, "slash": "/", "file": at("real/marker"), "badfile": a.outside + "/marker"} {
		if err := os.Symlink(to, at(link)); err != nil {
			t.Fatal(err)
		}
	}
	var all sync.WaitGroup
	over := make(chan struct{})
	flip := func(x, y string) {
		all.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
				}
				if err := unix.Renameat2(unix.AT_FDCWD, at(x), unix.AT_FDCWD, at(y), unix.RENAME_EXCHANGE); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	submit := func(n int, source, target, read string) {
		t.Helper()
		eventually(t, "the mount of "+source+" is accepted", func() bool { // not while it is outside
			r := a.run("run", "-d", "--array", fmt.Sprintf("1-%d%%4", n), "--mem", "1G", "-v", source+":"+target, tool, "read:"+read, "read:/m/etc/hostname")
			return r.code == 0
		})
	}
	flip("good", "bad")
	flip("parent", "slash")
	flip("file", "badfile")
	defer func() { close(over); all.Wait() }()
	n := max(races()/3, 1)
	submit(n, at("good"), "/m", "/m/marker")
	submit(n, at("parent/real"), "/m", "/m/marker")
	submit(n, at("file"), "/f", "/f")
	eventually(t, "some tasks have ended", func() bool { return len(a.ended()) > n/4 })
	a.kill()
	a.start()
	for have := len(a.ended()); have < 3*n; { // what is awaited is progress: a thousand take their time
		before := have
		eventually(t, "one more task has ended", func() bool { have = len(a.ended()); return have > before })
	}

	saw, refused := 0, 0
	for _, task := range a.ended() {
		ref := strconv.FormatInt(task.ID, 10)
		out, _ := a.lines(ref)
		switch {
		case strings.Contains(strings.Join(out, " "), "OUTSIDE") || len(out) == 2 && out[1] != "refused":
			t.Errorf("task %s saw what lies outside: %q", ref, out)
		case task.Phase == "succeeded" && out[0] == "inside":
			saw++
		case task.Phase == "failed" && strings.Contains(task.Reason, "-v "):
			refused++
		default:
			t.Errorf("task %s is %s (%s) and printed %q", ref, task.Phase, task.Reason, out)
		}
	}
	t.Logf("mounts: %d launches while the path is swapped: %d saw the allowed folder, %d were refused, 0 saw anything else", 3*n, saw, refused)
	if saw == 0 {
		t.Error("no task was let in")
	}
	eventually(t, "nothing is left for the engine", func() bool {
		left, _ := os.ReadDir(filepath.Join(mounts.DefaultDir, a.instance()))
		info, err := os.ReadFile("/proc/self/mountinfo")
		return err == nil && len(left) == 0 && !strings.Contains(string(info), a.instance())
	})
}

// ended are the finished tasks.
func (a *attacker) ended() (list []api.Task) {
	a.t.Helper()
	all, err := a.api.Tasks(a.t.Context(), api.ListOptions{All: true, Limit: 10_000})
	if err != nil {
		a.t.Fatal(err)
	}
	for _, task := range all {
		if task.Finished() {
			list = append(list, task)
		}
	}
	return list
}

func ended(t *api.Task) bool { return t.Finished() }
