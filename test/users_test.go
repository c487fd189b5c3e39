//go:build e2e

package test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"carma/runner/api"
)

// TestUsers checks that every user may submit tasks that run as that user, and that no user can
// change the tasks of others or the host.
func TestUsers(t *testing.T) {
	t.Parallel()
	needRoot(t)
	s := newServer(t)
	home := filepath.Join(s.root, "home") // users may mount from here
	s.flags = append(s.flags, "--allowed-mounts", home)
	s.borrowCommand()
	s.start()
	const nobody, stranger = 65534, 12345 // no passwd file has the second one
	as := func(id uint32, args ...string) result {
		t.Helper()
		return s.begin(&syscall.Credential{Uid: id, Gid: id}, args...).wait()
	}
	submit := func(id uint32, args ...string) string {
		t.Helper()
		r := as(id, append([]string{"run", "-d", "--mem", "1G"}, args...)...)
		if r.code != 0 || r.err != "" {
			t.Fatal(r)
		}
		return strings.TrimSpace(r.out)
	}
	rooted := s.submit("--name", "rooted", "--mem", "1G", tool, "user", "block:0")
	users := map[uint32]string{nobody: submit(nobody, tool, "user", "block:0"), stranger: submit(stranger, tool, "user", "block:0")}
	trains := submit(nobody, image, "mnist-cnn-bs64-14e") // this task may use the GPUs

	for id, ref := range users {
		name := strconv.Itoa(int(id)) + ":" + strconv.Itoa(int(id))
		logs := s.begin(nil, "logs", "-f", ref)
		logs.await(&logs.out, name+"\n")
		task := s.inspect(ref)
		if task.UID != int(id) || task.GID != int(id) {
			t.Errorf("task %s is of %d:%d, want %s", ref, task.UID, task.GID, name)
		}
		res, err := s.engine.cli.ContainerInspect(t.Context(), task.Attempts[0].Container, inspectNothing)
		if err != nil {
			t.Fatal(err)
		}
		if c := res.Container; c.Config.User != name || c.HostConfig.Privileged || len(c.HostConfig.SecurityOpt) == 0 {
			t.Errorf("task %s runs as %q, privileged %v, with %q", ref, c.Config.User, c.HostConfig.Privileged, c.HostConfig.SecurityOpt)
		}
	}
	s.succeeded(trains)

	for _, ref := range []string{rooted, users[stranger]} {
		owner := s.inspect(ref).User
		as(nobody, "stop", ref).refused(t, 2, "task "+ref+" belongs to "+owner)
		as(nobody, "rm", "-f", ref).refused(t, 2, "task "+ref+" belongs to "+owner)
	}
	as(stranger, "stop", users[nobody]).refused(t, 2, "belongs to "+s.inspect(users[nobody]).User)
	as(stranger, "rm", trains).refused(t, 2, "belongs to ")

	for _, dir := range []string{home, home + "/data", home + "s"} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(home+"/data/hello", []byte("hello from home"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc", home+"/link"); err != nil {
		t.Fatal(err)
	}
	reads := submit(nobody, "-v", home+"/data:/host:ro", tool, "read:/host/hello", "write:/host/bye", "read:/etc/shadow")
	s.succeeded(reads)
	if out, _ := s.lines(reads); !slices.Equal(out, []string{"hello from home", "refused", "refused"}) {
		t.Errorf("with its own folder mounted it printed %q", out)
	}
	for _, source := range []string{"/etc", "/", "/var/run", s.dir, home + "s", home + "/link", home + "/../d", home + "/data/../../d"} {
		r := as(nobody, "run", "-d", "--mem", "1G", "-v", source+":/host", tool, "read:/host/passwd")
		r.refused(t, 2, "-v ", "you may mount only below "+home)
	}
	if r := as(nobody, "daemon", "--data-dir", s.dir, "--socket", filepath.Join(s.root, "s2"), "--gpus", "sim:dgx-station-a100"); r.code != 2 ||
		!strings.Contains(r.err, "belongs to somebody else") || !strings.Contains(r.err, "choose a folder of your own with --data-dir") {
		t.Errorf("a daemon on another's folder: %v", r)
	}

	for id, ref := range users {
		if r := as(id, "stop", ref); r.code != 0 {
			t.Errorf("its owner cannot stop it: %v", r)
		}
	}
	s.ok("stop", rooted)
	for _, ref := range []string{rooted, users[nobody], users[stranger]} {
		s.until(ref, "its end", func(t *api.Task) bool { return t.Phase == "cancelled" })
	}
	if out, _ := s.lines(rooted); len(out) != 1 || out[0] != "0:0" {
		t.Errorf("root's task ran as %q", out)
	}
	if list := split(s.ok("ps", "-a", "-q")); len(list) != 5 {
		t.Errorf("there are tasks %q, want the five that were accepted", list)
	}
	s.engine.gone(t, s.instance())
	s.verified()
}

// borrowCommand copies the command to a place where other users can run it.
func (s *server) borrowCommand() {
	s.t.Helper()
	program, err := os.ReadFile(carma)
	if err != nil {
		s.t.Fatal(err)
	}
	s.cli = filepath.Join(s.root, "carma")
	if err := os.WriteFile(s.cli, program, 0o755); err != nil {
		s.t.Fatal(err)
	}
}
