//go:build e2e && containerd

package test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"carma/containers/containerstest"
)

// TestSuiteFilesContainerd: on containerd an ordinary user's tasks have the secrets and
// configs of their suite, and nothing is written into root's folder.
func TestSuiteFilesContainerd(t *testing.T) {
	t.Parallel()
	c := newContainerd(t)
	on := []string{"--driver", "containerd", "--containerd-address", c.Address()}
	a := newAttacker(newServer(t, on...))
	s := a.server
	program, err := os.ReadFile(filepath.Join(scratch, "tool"))
	if err != nil {
		t.Fatal(err)
	}
	tar, err := containerstest.Archive("docker.io/library/"+tool, "/tool", program, containerstest.ImageConfig{Entrypoint: []string{"/tool"}})
	if err != nil {
		t.Fatal(err)
	}
	path := s.write("tool.tar", string(tar))
	s.ok(append([]string{"image", "import", path}, on...)...)
	shared := filepath.Join(a.home, "shared")
	if err := os.Mkdir(shared, 0o755); err != nil {
		t.Fatal(err)
	}
	up := func(target string) result {
		file := s.write("compose.yaml", fmt.Sprintf(`name: files
services:
  train:
    image: %q
    command: ["read:/run/secrets/key", "read:%s", "user"]
    volumes: ["%s:/m"]
    secrets: [{source: key, mode: 0400}]
    configs: [{source: conf, target: %[2]q}]
    x-carma: {mem: 1G}
secrets: {key: {environment: HOME}}
configs: {conf: {content: "lr: 0.1"}}
`, "docker.io/library/"+tool, target, shared))
		return s.begin(&syscall.Credential{Uid: a.id, Gid: a.id}, "suite", "up", file).wait()
	}
	if r := up("/etc/app/conf"); r.code != 0 || !strings.Contains(r.out, "| /nonexistent\n") || !strings.Contains(r.out, "| lr: 0.1\n") || !strings.Contains(r.out, fmt.Sprintf("| %d:%[1]d\n", a.id)) {
		t.Fatal(r)
	}
	if r := up("/m/../m/pwned"); r.code != 2 || !strings.Contains(r.err, "its path meets the mount at /m") {
		t.Error(r)
	}
	if r := a.run("run", "--mem", "1G", "-v", shared+":/m", "--workdir", "/m/pwned", "docker.io/library/"+tool, "out:started"); r.code == 0 {
		t.Error(r)
	}
	if names, err := os.ReadDir(shared); err != nil || len(names) > 0 {
		t.Errorf("root's folder has %v, %v", names, err)
	}
	if kept := s.suiteFiles(); len(kept) != 0 {
		t.Errorf("kept: %q", kept)
	}
}
