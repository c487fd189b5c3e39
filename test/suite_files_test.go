//go:build e2e

package test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/moby/moby/client"

	"carma/runner/api"
)

// suiteFiles lists the files of suites that the daemon keeps.
func (s *server) suiteFiles() []string {
	files, err := filepath.Glob(filepath.Join(s.dir, "suite-files", "*"))
	if err != nil {
		s.t.Fatal(err)
	}
	return files
}

// TestSuiteFiles: secrets, configs and copied files of an ordinary user's suite, for helpers
// with a user, without one and with a folder of the host, and for tasks. Each belongs to its
// container's user and cannot be changed, and survives a crash of the helper and a kill of the
// daemon. The daemon keeps them in a folder that only root can read, for as long as they are
// used.
func TestSuiteFiles(t *testing.T) {
	t.Parallel()
	needRoot(t)
	a := newAttacker(newServer(t))
	s := a.server
	h := &helped{server: s, name: strings.ToLower("files-" + filepath.Base(s.root)), who: &syscall.Credential{Uid: a.id, Gid: a.id}}
	t.Cleanup(h.clear)
	s.write("key.txt", "a secret\n")
	s.write("own.conf", "own\n")
	h.file = s.write("compose.yaml", fmt.Sprintf(`name: %[1]s
x-base: &base
  image: %[2]q
  command: serve :5000
  ports: ["5000"]
  secrets: [{source: key, mode: 0400}]
  configs: [{source: conf, target: /etc/app/conf}]
services:
  user: {<<: *base, user: "%[4]d:%[4]d", restart: always}
  other: {<<: *base, user: "4000:4001", read_only: true}
  image: {<<: *base, volumes: ["./own.conf:/etc/own.conf"], tmpfs: [/run]}
  folder: {<<: *base, volumes: ["%[5]s:/data"]}
  train:
    image: %[3]q
    command: ["read:/run/secrets/key", "read:/etc/app/conf", "write:/etc/app/conf", "user"]
    gpus: [{count: 1}]
    secrets: [{source: key, mode: 0400}]
    configs: [{source: conf, target: /etc/app/conf}]
    depends_on: [user, other, image, folder]
    x-carma: {mem: 1G}
secrets: {key: {file: key.txt}}
configs: {conf: {content: "lr: 0.1\n"}}
`, h.name, peerImage(t), tool, a.id, a.home))
	r := h.as("suite", "up", "--keep", h.file)
	if r.code != 0 || !strings.Contains(r.out, "-train | a secret\n") || !strings.Contains(r.out, "-train | lr: 0.1\n") || !strings.Contains(r.out, "-train | refused\n") ||
		!strings.Contains(r.out, fmt.Sprintf("-train | %d:%[1]d\n", a.id)) {
		t.Fatal(r)
	}
	for _, name := range []string{"user", "other", "image", "folder"} {
		running := h.helper(name, "running", func(s *api.HelperState) bool { return s.State == "running" && asked(s, "/user") != "" })
		for path, want := range map[string]string{"/run/secrets/key": "a secret", "/etc/app/conf": "lr: 0.1"} {
			if got := asked(&running, "/file?name="+path); got != want {
				t.Errorf("%s reads %s: %q", name, path, got)
			}
		}
		if name == "image" {
			if got := asked(&running, "/file?name=/etc/own.conf"); got != "own" {
				t.Errorf("the copied file: %q", got)
			}
		}
	}
	if kept := s.suiteFiles(); len(kept) != 4 { // the task's files are removed
		t.Errorf("kept: %q", kept)
	}
	for _, path := range append(s.suiteFiles(), filepath.Join(s.dir, "suite-files")) {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", path, info, err)
		}
	}
	if strings.Contains(s.log.String(), "a secret") {
		t.Error("the secret is in the daemon's log")
	}

	left := filepath.Join(s.dir, "suite-files", "carma-left-1")
	s.kill()
	if err := os.Mkdir(left, 0o700); err != nil {
		t.Fatal(err)
	}
	user := h.named(t, "user")
	if err := syscall.Kill(user.Container.State.Pid, syscall.SIGKILL); err != nil { // while no daemon runs
		t.Fatal(err)
	}
	s.start()
	again := h.helper("user", "up again", func(s *api.HelperState) bool { return s.Restarts == 1 && asked(s, "/user") != "" })
	if got := asked(&again, "/file?name=/run/secrets/key"); got != "a secret" {
		t.Errorf("after a crash without a daemon: %q", got)
	}
	if _, err := os.Stat(left); err == nil {
		t.Error("the files of a container that is gone are left")
	}
	if r := h.as("suite", "down", "-v", "-p", h.name); r.code != 0 {
		t.Error(r)
	}
	if kept := s.suiteFiles(); len(kept) != 0 {
		t.Errorf("left: %q", kept)
	}
	s.checkContainers()
}

// TestSecuritySuiteFiles: an ordinary user cannot have anything written into root's folder of
// allowed-mounts: neither by the target of a config in any spelling, nor by mount points and
// working folders, nor by links of the image or of a mounted folder. In a folder of the user,
// missing mount points are made with the user as owner.
func TestSecuritySuiteFiles(t *testing.T) {
	t.Parallel()
	needRoot(t)
	a := newAttacker(newServer(t))
	s := a.server
	h := &helped{server: s, who: &syscall.Credential{Uid: a.id, Gid: a.id}}
	t.Cleanup(h.clear)
	shared := filepath.Join(a.home, "shared") // as data sets are
	if err := os.Mkdir(shared, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/m/pwned", a.home+"/real/l"); err != nil {
		t.Fatal(err)
	}
	linked := fmt.Sprintf("carma-e2e-linked:%d", os.Getpid())
	if err := engine.importProgram(t.Context(), filepath.Join(scratch, "tool"), "/tool", linked, [2]string{"/cfg", "/m"}, [2]string{"/end", "/m/pwned"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, _ = engine.cli.ImageRemove(context.Background(), linked, client.ImageRemoveOptions{Force: true})
	})
	untouched := func(what string) {
		t.Helper()
		if names, err := os.ReadDir(shared); err != nil || len(names) > 0 {
			t.Errorf("%s: root's folder has %v, %v", what, names, err)
			for _, n := range names {
				_ = os.RemoveAll(filepath.Join(shared, n.Name()))
			}
		}
	}
	suite := func(n int, target, extra string) result {
		file := s.write(fmt.Sprintf("attack%d.yaml", n), fmt.Sprintf(`name: attack%d
services:
  a: {image: %q, command: ["out:started"], volumes: ["%s:/m", "%s/real:/u"], configs: [{source: c, target: %q}], %s}
configs: {c: {content: x}}
`, n, linked, shared, a.home, target, extra))
		return h.as("suite", "up", file)
	}
	for i, extra := range []string{"x-carma: {mem: 1G}", `user: ""`} { // a task, and a helper
		for j, target := range []string{"/m/pwned", "/m", "//m//pwned", "/m/../m/pwned", "/x/../m/./pwned", "/u/l", "/m/deep/pwned"} {
			r := suite(100*i+j, target, extra)
			if r.code != 2 || !strings.Contains(r.err, "its path meets the mount at /") || strings.Contains(r.out, "started") {
				t.Errorf("target %s: %v", target, r)
			}
			untouched("target " + target)
		}
		for j, target := range []string{"/cfg/pwned", "/end", "/cfg/deep/pwned"} {
			// The engine mounts places of equal depth in any order: /end may lead into the
			// image, before the folder is mounted there.
			if r := suite(100*i+50+j, target, extra); target != "/end" && (r.code != 1 || strings.Contains(r.out, "started")) {
				t.Errorf("target %s, by a link of the image: %v", target, r)
			}
			untouched("target " + target + ", by a link of the image")
		}
	}
	for _, args := range [][]string{
		{"--workdir", "/m/pwned"}, {"--workdir", "/cfg/pwned"}, {"-v", a.home + "/real:/m/pwned"}, {"-v", a.home + "/real:/cfg/pwned"},
		{"-v", a.home + "/real:/u", "-v", a.home + "/real:/u/l"}, {"--tmpfs", "/m/pwned"}, {"--tmpfs", "/cfg/pwned"},
	} {
		r := a.run(append(append([]string{"run", "--mem", "1G", "-v", shared + ":/m"}, args...), linked, "out:started")...)
		if r.code == 0 || strings.Contains(r.out, "started") {
			t.Errorf("%q: %v", args, r)
		}
		untouched(strings.Join(args, " "))
	}

	own := filepath.Join(a.home, "real")
	r := a.run("run", "--mem", "1G", "-v", own+":/u", "-v", shared+":/u/data/set", "--tmpfs", "/u/tmp", "--workdir", "/u/work", tool, "dir", "write:/u/work/new", "write:/u/data/set/new")
	if r.code != 0 || r.out != "/u/work\nwritten\nrefused\n" {
		t.Errorf("mounts in the user's own folder: %v", r)
	}
	for _, name := range []string{"data", "data/set", "tmp", "work", "work/new"} {
		info, err := os.Stat(filepath.Join(own, name))
		if err != nil || info.Sys().(*syscall.Stat_t).Uid != a.id {
			t.Errorf("%s is not the user's: %v, %v", name, info, err)
		}
	}
	untouched("a mount in the user's folder")
}

// named returns a helper's container, as the engine has it.
func (h *helped) named(t *testing.T, helper string) client.ContainerInspectResult {
	t.Helper()
	of := client.Filters{}
	of.Add("label", "carma.helpers="+h.instance())
	of.Add("label", "carma.helper="+helper)
	list, err := engine.cli.ContainerList(t.Context(), client.ContainerListOptions{Filters: of})
	if err != nil || len(list.Items) != 1 {
		t.Fatal(list, err)
	}
	c, err := engine.cli.ContainerInspect(t.Context(), list.Items[0].ID, inspectNothing)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
