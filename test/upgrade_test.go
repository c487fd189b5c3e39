//go:build e2e

package test

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"carma/internal/units"
)

// carmaBuild is a build of carma that takes over journals of other builds.
type carmaBuild struct{ name, path string }

// programs returns the builds in TEST_BUILDS ("NAME=PATH ...") that want accepts, see
// test/upgrade/builds.sh.
func programs(t *testing.T, want func(name string) bool) (all []carmaBuild) {
	t.Helper()
	for _, build := range strings.Fields(os.Getenv("TEST_BUILDS")) {
		if name, path, _ := strings.Cut(build, "="); want(name) {
			all = append(all, carmaBuild{name, path})
		}
	}
	if len(all) == 0 {
		t.Skip("TEST_BUILDS names no such program: make test-upgrade")
	}
	return all
}

func isLater(name string) bool { return strings.HasPrefix(name, "later-") }

// use has the next start, and the commands from now on, use a program.
func (s *server) use(path string) { s.bin, s.cli = path, path }

// knows reports whether the program in use has a command.
func (s *server) knows(command string) bool {
	return strings.Contains(s.carma("--help").out, "\n  "+command+" ")
}

// upgraded is a server whose programs change.
type upgraded struct {
	*server
	id string // the instance
}

func newUpgraded(t *testing.T, path string) *upgraded {
	u := &upgraded{server: newServer(t, "--speed", "60", "--warm-up", "0s")}
	t.Cleanup(func() { // this program may not read the journal
		u.kill()
		if err := u.engine.remove(u.id); err != nil {
			t.Error(err)
		}
	})
	u.use(path)
	u.start()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(u.dir, "carma.db"))
	if err == nil {
		err = db.QueryRow("SELECT value FROM meta WHERE key = 'instance'").Scan(&u.id)
	}
	if err = errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	return u
}

// present returns the existing containers, with the engine's requests for them.
func (u *upgraded) present() string {
	var all []string
	for _, l := range u.engine.of(u.id) {
		all = append(all, fmt.Sprintf("task %d attempt %d %.12s, %d starts, removed %v, signals %q", l.task, l.attempt, l.id, len(l.starts), l.removed, l.signals))
	}
	return strings.Join(all, "\n")
}

// phases returns the tasks as the daemon lists them.
func (u *upgraded) phases() string {
	var all []string
	for _, name := range u.names() {
		task := u.inspect(name)
		line := fmt.Sprintf("%s: %s, %d attempts", name, task.Phase, len(task.Attempts))
		for _, a := range task.Attempts {
			for _, g := range a.GPUs {
				line += fmt.Sprintf(", GPU %d", g.Index)
			}
		}
		all = append(all, line)
	}
	return strings.Join(all, "\n")
}

func (u *upgraded) names() []string {
	names := []string{}
	var tasks []struct{ Name string }
	u.decode(&tasks, "ps", "-a", "--json")
	for _, task := range tasks {
		names = append(names, task.Name)
	}
	slices.Sort(names)
	return names
}

// fill brings tasks into all states that the program in use has.
func (u *upgraded) fill() {
	train := func(name, mem, peak string, flags ...string) {
		args := append([]string{"--name", name, "--mem", mem}, flags...)
		u.submit(append(args, image, "resnet50-imagenet-bs64", "--peak", peak, "--time", "900h")...)
		u.is(name, "running")
	}
	train("runs", "4G", "2G")
	train("resized", "4G", "12G")
	eventually(u.t, "a grant grows", func() bool { return u.granted("resized") > int64(11*units.GiB) })
	u.submit("--name", "held", "--mem", "1G", "--after", "runs", image, "resnet50-imagenet-bs64", "--time", "900h")
	if !u.knows("drain") {
		return
	}
	train("drained", "20G", "19G")
	u.ok("drain", fmt.Sprint(u.inspect("drained").Attempts[0].GPUs[0].Index))
	if !u.knows("suspend") {
		return
	}
	train("moved", "21G", "20G")
	u.holds("moved", 20*units.GiB)
	first := u.inspect("moved").Attempts[0].GPUs[0].Index
	u.ok("drain", fmt.Sprint(first), "--move")
	eventually(u.t, "a task moves", func() bool {
		task := u.inspect("moved")
		return task.Phase == "running" && task.Attempts[0].GPUs[0].Index != first
	})
	u.holds("moved", 20*units.GiB)
	train("suspended", "6G", "5G")
	u.holds("suspended", 5*units.GiB)
	u.ok("suspend", "suspended")
}

// takesOver starts a program and checks that the tasks and their containers are
// as they were.
func (u *upgraded) takesOver(path, was, phases string) {
	u.t.Helper()
	u.use(path)
	u.start()
	if now := u.present(); now != was {
		u.t.Errorf("containers were\n%s\nand are\n%s", was, now)
	}
	if now := u.phases(); now != phases {
		u.t.Errorf("tasks were\n%s\nand are\n%s", phases, now)
	}
}

// refuses starts a program that must say why it does not run, and must leave
// everything as it is.
func (u *upgraded) refuses(path, was string, words ...string) {
	u.t.Helper()
	u.use(path)
	u.launch()
	select {
	case <-u.exited:
	case <-time.After(patience):
		u.t.Errorf("%s runs; containers were\n%s\nand are\n%s", path, was, u.present())
		u.kill()
		return
	}
	code := u.cmd.ProcessState.ExitCode()
	u.cmd = nil
	said := u.log.String()[u.life:]
	if code == 0 {
		u.t.Errorf("it ends with code 0")
	}
	for _, w := range words {
		if !strings.Contains(said, w) {
			u.t.Errorf("it says %q, without %q", said, w)
		}
	}
	if now := u.present(); now != was {
		u.t.Errorf("containers were\n%s\nand are\n%s", was, now)
	}
	u.t.Logf("%s: code %d, %s", filepath.Base(filepath.Dir(path)), code, strings.TrimSpace(said))
}

// TestUpgrade has earlier programs and this one take over each other's journals,
// with tasks in every state: up, down, up again, and down with the backup.
func TestUpgrade(t *testing.T) {
	needRoot(t)
	for _, old := range programs(t, func(name string) bool { return !isLater(name) }) {
		t.Run(old.name, func(t *testing.T) {
			u := newUpgraded(t, old.path)
			u.fill()
			was, phases := u.present(), u.phases()
			t.Logf("%s left\n%s\n%s", old.name, phases, was)
			u.kill()
			u.takesOver(carma, was, phases)
			u.stop()
			u.refuses(old.path, was, "written by a newer version: schema 4, this carma knows up to")
			u.takesOver(carma, was, phases)
			u.kill()
			u.use(old.path)
			if r := u.carma("journal", "restore", "--accept-loss", "--data-dir", u.dir, filepath.Join(u.dir, "before-schema-4.db")); r.code != 0 {
				t.Logf("%s restores no backup: %v", old.name, r) // c2fad6d has no such command
				return
			}
			u.takesOver(old.path, was, phases)
		})
	}
}

// TestDowngrade has this program fill a journal and earlier ones refuse it.
func TestDowngrade(t *testing.T) {
	needRoot(t)
	old := programs(t, func(name string) bool { return !isLater(name) })
	u := newUpgraded(t, carma)
	u.fill()
	was, phases := u.present(), u.phases()
	// After SIGTERM nothing that is new need be left but in the snapshot.
	for _, end := range []func(){u.kill, u.stop} {
		end()
		for _, p := range old {
			u.refuses(p.path, was, "written by a newer version: schema 4, this carma knows up to")
		}
		u.takesOver(carma, was, phases)
	}
}

// TestLaterProgram has later programs fill a journal. This one takes it over
// before it has anything new, and refuses it afterwards: by its features, or, if
// the later program forgot to note one, by the field that it does not know.
func TestLaterProgram(t *testing.T) {
	needRoot(t)
	for _, later := range programs(t, isLater) {
		t.Run(later.name, func(t *testing.T) {
			words := map[string]string{
				"later-declared":  `this carma does not know "graceful suspend"; use carma 9.9.9 or newer`,
				"later-forgotten": "this carma does not know field grace in event suspend-asked",
			}[later.name]
			u := newUpgraded(t, later.path)
			u.submit("--name", "runs", "--mem", "4G", image, "resnet50-imagenet-bs64", "--peak", "2G", "--time", "900h")
			u.holds("runs", 2*units.GiB)
			was, phases := u.present(), u.phases()
			u.kill()
			u.takesOver(carma, was, phases) // down, without anything new
			u.kill()
			u.takesOver(later.path, was, phases) // up again
			u.ok("suspend", "runs")
			phases = u.phases()
			u.kill()
			u.refuses(carma, was, words, "9.9.9 or newer")
			for _, args := range [][]string{
				{"history", "verify"}, {"journal", "check"}, {"journal", "backup", filepath.Join(u.root, "backup")}, {"journal", "repair", "--accept-loss"},
			} {
				if later.name == "later-forgotten" && args[0] == "journal" {
					continue // these copy rows and do not read what is in them
				}
				if r := u.carma(append(args, "--data-dir", u.dir)...); r.code == 0 || !strings.Contains(r.out+r.err, "9.9.9 or newer") {
					t.Errorf("%v", r)
				}
			}
			file := filepath.Join(u.root, "config.yaml")
			if err := os.WriteFile(file, []byte("data-dir: "+u.dir+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			if r := u.carma("doctor", "--config", file); !strings.Contains(r.out, "9.9.9 or newer") {
				t.Errorf("%v", r)
			}
			u.takesOver(later.path, was, phases)
			u.ok("resume", "runs")
			u.is("runs", "running")
		})
	}
}
