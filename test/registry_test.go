//go:build e2e

package test

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/moby/moby/client"

	"carma/containers/containerstest"
)

// TestPrivateRegistry: two users of a server run an image of a registry that requires a login
// on Docker, each with their own docker configuration.
func TestPrivateRegistry(t *testing.T) {
	t.Parallel()
	needRoot(t)
	s := newServer(t)
	s.borrowCommand()
	s.privateRegistry(func(image string) {
		_, _ = engine.cli.ImageRemove(context.Background(), image, client.ImageRemoveOptions{Force: true})
	})
}

// privateRegistry makes a registry and uses it as two users. drop removes its image from
// the engine.
func (s *server) privateRegistry(drop func(image string)) {
	s.t.Helper()
	t := s.t
	program, err := os.ReadFile(filepath.Join(scratch, "tool"))
	if err != nil {
		t.Fatal(err)
	}
	archive, err := containerstest.Archive("tool", "/tool", program, containerstest.ImageConfig{
		Entrypoint: []string{"/tool"}, Labels: map[string]string{"test": s.root}, // an image of this test's own
	})
	if err != nil {
		t.Fatal(err)
	}
	reg, err := containerstest.NewRegistry(archive, map[string]string{"ann-there": "s3cret-of-ann", "bob-there": "s3cret-of-bob"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = reg.Close() })
	t.Cleanup(func() { drop(reg.Image) })
	s.start()

	ids := uint32(12346 + 2*people.Add(1))
	ann, bob := s.dockerUser("ann", ids), s.dockerUser("bob", ids+1)
	run := func(who dockerUser) result {
		return s.as(who, "run", "--mem", "1G", reg.Image, "env:HTTP_PROXY")
	}
	refused := func(who dockerUser, words string) {
		t.Helper()
		if r := run(who); r.code != 2 || !strings.Contains(r.err, words) || strings.Count(r.err, "\n") != 1 {
			t.Errorf("%v\nwant exit code 2 and one line with %q", r, words)
		}
	}
	succeeds := func(who dockerUser, out string) {
		t.Helper()
		if r := run(who); r.code != 0 || r.out != out {
			t.Errorf("%v\nwant %q", r, out)
		}
	}
	login := "docker login " + reg.Address

	refused(ann, login)
	ann.config(t, `{"auths": {%q: {"auth": %q}}, "proxies": {"default": {"httpProxy": "http://proxy.example:3128"}}}`, reg.Address, base64.StdEncoding.EncodeToString([]byte("ann-there:s3cret-of-ann")))
	succeeds(ann, "HTTP_PROXY=http://proxy.example:3128\n")
	refused(bob, "is private")
	refused(bob, login)
	bob.config(t, `{"auths": {%q: {"auth": %q}}}`, reg.Address, base64.StdEncoding.EncodeToString([]byte("bob-there:guess")))
	refused(bob, "does not give it to you")
	s.kill()
	s.start()
	succeeds(ann, "HTTP_PROXY=http://proxy.example:3128\n") // her access is stored
	bob.config(t, `{"auths": {}}`)
	refused(bob, "is private")
	if reg.Served("bob-there") != 0 {
		t.Error("the registry gave bob the image by now")
	}

	// A credential helper has the password of bob.
	helper := fmt.Sprintf("#!/bin/sh\n[ \"$(cat)\" = %s ] && echo '{\"ServerURL\":\"\",\"Username\":\"bob-there\",\"Secret\":\"s3cret-of-bob\"}' || { echo credentials not found in native keychain; exit 1; }\n", reg.Address)
	if err := os.WriteFile(filepath.Join(bob.dir, "docker-credential-vault"), []byte(helper), 0o755); err != nil {
		t.Fatal(err)
	}
	bob.config(t, `{"credHelpers": {%q: "vault"}}`, reg.Address)
	succeeds(bob, "HTTP_PROXY=\n")
	if reg.Served("bob-there") == 0 {
		t.Error("the registry was not asked as bob")
	}
	bob.config(t, `{"credHelpers": {%q: "absent"}}`, reg.Address)
	if r := run(bob); r.code != 0 || !strings.Contains(r.err, "docker-credential-absent") {
		t.Errorf("with a helper that is not there: %v", r)
	}
	bob.config(t, `{"credHelpers": `)
	if r := run(bob); r.code != 0 || !strings.Contains(r.err, "docker's configuration") {
		t.Errorf("with a file that is cut off: %v", r)
	}
	if log := s.log.String(); strings.Contains(log, "s3cret") {
		t.Errorf("the daemon's log has a password:\n%s", log)
	}
}

// dockerUser is a user with a docker configuration.
type dockerUser struct {
	who *syscall.Credential
	dir string
}

func (s *server) dockerUser(name string, id uint32) dockerUser {
	s.t.Helper()
	u := dockerUser{&syscall.Credential{Uid: id, Gid: id}, filepath.Join(s.root, name)}
	if err := os.Mkdir(u.dir, 0o700); err != nil {
		s.t.Fatal(err)
	}
	if err := os.Chown(u.dir, int(id), int(id)); err != nil {
		s.t.Fatal(err)
	}
	return u
}

// config writes the user's docker configuration.
func (u dockerUser) config(t *testing.T, format string, a ...any) {
	t.Helper()
	path := filepath.Join(u.dir, "config.json")
	if err := os.WriteFile(path, fmt.Appendf(nil, format, a...), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(path, int(u.who.Uid), int(u.who.Gid)); err != nil {
		t.Fatal(err)
	}
}

// as runs a command of carma as the user.
func (s *server) as(u dockerUser, args ...string) result {
	s.t.Helper()
	words := append([]string{"DOCKER_CONFIG=" + u.dir, "PATH=" + u.dir + ":/usr/bin:/bin", s.cli}, args...)
	cli := s.cli
	s.cli = "/usr/bin/env"
	defer func() { s.cli = cli }()
	return s.begin(u.who, words...).wait()
}
