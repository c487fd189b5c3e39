//go:build e2e

package test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"carma/runner/api"
	"carma/runner/mounts"
)

// each is the number of mounts of each task in the race.
const each = 20

// races returns the number of mounts that must be made while their path is swapped: few
// in CI, 1,000 in make test-security.
func races() int {
	if n, err := strconv.Atoi(os.Getenv("TEST_SECURITY_RACES")); err == nil {
		return n
	}
	return 4 * each
}

// attacker is a user with two folders. From home she may mount. From outside she
// may not, though everybody may read it.
type attacker struct {
	*server
	id, other     uint32 // the attacker's own, and the id of another user, who attacks her
	home, outside string
}

// newAttacker prepares the folders. The daemon must be running.
func newAttacker(s *server) *attacker {
	t := s.t
	t.Helper()
	a := &attacker{server: s, home: filepath.Join(s.root, "home"), outside: filepath.Join(s.root, "outside")}
	a.id, a.other = a.people()
	s.flags = append(s.flags, "--allowed-mounts", a.home)
	s.borrowCommand()
	for dir, text := range map[string]string{a.home: "", a.home + "/real": "inside", a.outside: "", a.outside + "/real": "OUTSIDE"} {
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

// run runs a command as her.
func (a *attacker) run(args ...string) result {
	a.t.Helper()
	return a.begin(&syscall.Credential{Uid: a.id, Gid: a.id}, args...).wait()
}

// TestSecurityMountRace: tasks that mount a path are launched. Meanwhile the
// owner of the path swaps it, or a folder above it, and the daemon is killed. No
// container may ever see files outside.
func TestSecurityMountRace(t *testing.T) {
	t.Parallel()
	needRoot(t)
	mountRace(newAttacker(newServer(t)))
}

// mountRace launches tasks that mount one path 20 times each. Each mount is opened separately,
// so all 20 are tries; the content of each is read. The path alternates between the allowed
// folder and the other one. So some tasks are accepted, and the path is often outside when the
// engine mounts it. This continues, with repeated kills of the daemon, until enough mounts have
// been made.
func mountRace(a *attacker) {
	t := a.t
	t.Helper()
	at := func(p string) string { return filepath.Join(a.home, p) }
	for link, to := range map[string]string{"link": at("real"), "slash": "/", "parent": a.home, "beyond": a.outside, "file": at("real/marker"), "badfile": a.outside + "/real/marker"} {
		if err := os.Symlink(to, at(link)); err != nil {
			t.Fatal(err)
		}
	}
	var all sync.WaitGroup
	var flips atomic.Int64
	over := make(chan struct{})
	flip := func(x, y string) {
		all.Go(func() {
			for outside := false; ; outside = !outside {
				stay := rand.N(200 * time.Millisecond)
				if outside {
					stay = rand.N(100 * time.Millisecond)
				}
				select {
				case <-over:
					return
				case <-time.After(stay):
				}
				if err := unix.Renameat2(unix.AT_FDCWD, at(x), unix.AT_FDCWD, at(y), unix.RENAME_EXCHANGE); err != nil {
					t.Error(err)
					return
				}
				flips.Add(1)
			}
		})
	}
	submit := func(n int, source, marker string) {
		t.Helper()
		args := []string{"run", "-d", "--array", fmt.Sprintf("1-%d%%4", n), "--mem", "1G"}
		var read []string
		for i := range each {
			target := fmt.Sprintf("/m%d", i)
			args = append(args, "-v", source+":"+target)
			read = append(read, "read:"+target+marker)
		}
		args = append(append(args, tool), read...)
		eventually(t, "the mount of "+source+" is accepted", func() bool { return a.run(args...).code == 0 }) // never while it is outside
	}
	flip("link", "slash")
	flip("parent", "beyond")
	flip("file", "badfile")
	defer func() { close(over); all.Wait() }()
	inside := slices.Repeat([]string{"inside"}, each)
	saw, refused := 0, 0
	for saw*each < races() && !t.Failed() {
		n, before := min(max((races()-saw*each)/each/3, 2), 15), saw+refused
		submit(n, at("link"), "/marker")
		submit(n, at("parent/real"), "/marker")
		submit(n, at("file"), "")
		eventually(t, "a task has ended", func() bool { return len(a.ended()) > before })
		a.kill()
		a.start()
		for have := len(a.ended()); have < before+3*n; { // waits until more tasks end, because many tasks take long
			last := have
			eventually(t, "one more task has ended", func() bool { have = len(a.ended()); return have > last })
		}
		for _, task := range a.ended() { // newest first
			if saw+refused == before+3*n {
				break
			}
			ref := strconv.FormatInt(task.ID, 10)
			out, _ := a.lines(ref)
			switch {
			case task.Phase == "succeeded" && slices.Equal(out, inside):
				saw++
			case task.Phase == "failed" && len(out) == 0 && strings.Contains(task.Reason, "-v "):
				refused++
			default:
				t.Fatalf("task %s is %s (%s) and printed %q", ref, task.Phase, task.Reason, out)
			}
		}
	}
	t.Logf("mounts: %d tasks of %d mounts each, path swapped %d times: %d mounts made, all of the allowed folder; %d tasks refused; 0 mounts show anything else",
		saw+refused, each, flips.Load(), saw*each, refused)
	eventually(t, "nothing is left for the engine", func() bool {
		left, _ := os.ReadDir(filepath.Join(mounts.DefaultDir, a.instance()))
		info, err := os.ReadFile("/proc/self/mountinfo")
		return err == nil && len(left) == 0 && !strings.Contains(string(info), a.instance())
	})
}

// ended returns the finished tasks.
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
