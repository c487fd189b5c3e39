package notify

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"carma/runner/api"
)

// script writes a program that only its owner can change, below a folder of the same
// kind: /tmp has the sticky bit.
func script(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	for at := dir; at != "/" && at != os.TempDir(); at = filepath.Dir(at) {
		if err := os.Chmod(at, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "hook")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func hooked(t *testing.T, path string) *office {
	o := newOffice(t)
	o.rules.Server.Channels = []api.NotifyChannel{{Name: "ops", Kind: api.NotifyHook, Command: path, Events: []string{api.NotifyFailed}}}
	return o.open()
}

// TestHook checks that a hook gets the message as JSON, runs as an unprivileged user, and gets
// no variable of the daemon's environment.
func TestHook(t *testing.T) {
	t.Setenv("CARMA_SECRET", "secret")
	out := filepath.Join(t.TempDir(), "out")
	for at := filepath.Dir(out); at != "/" && at != os.TempDir(); at = filepath.Dir(at) {
		_ = os.Chmod(at, 0o777)
	}
	o := hooked(t, script(t, "{ cat; echo; id -un; env; echo args: $#; } > "+out+"\necho it says so\n"))
	m := failed(1, 1000)
	m.Name = `$(touch /tmp/x); "; rm`
	o.put(1, m)
	until(t, "the hook", func() bool { return o.count("hook sent") == 1 })
	raw, err := os.ReadFile(out)
	got := string(raw)
	if err != nil || !strings.Contains(got, `"name":"$(touch /tmp/x); \"; rm"`) || strings.Contains(got, "secret") || !strings.Contains(got, "args: 0") || strings.Contains(got, "private words") {
		t.Error(err, got)
	}
	if os.Geteuid() == 0 && !strings.Contains(got, "\nnobody\n") {
		t.Error("not run as nobody:", got)
	}
	if !strings.Contains(o.log.String(), "it says so") {
		t.Error(o.log.String())
	}
}

func TestHookFails(t *testing.T) {
	o := newOffice(t)
	o.pace.Limit = 300 * time.Millisecond
	for name, test := range map[string]struct{ path, want string }{
		"code":    {script(t, "exit 7\n"), "it ended with code 7"},
		"hang":    {script(t, "sleep 1000 & sleep 1000\n"), "it did not end in time and was killed"},
		"missing": {"/nowhere/hook", "/nowhere/hook is not there"},
	} {
		h := &hook{path: test.path, log: o.open().opt.Log}
		o.end()
		ctx, cancel := context.WithTimeout(context.Background(), o.pace.Limit)
		_, err := h.deliver(ctx, write("gpu1", []Message{{ID: "x"}}, true, 0))
		cancel()
		if err == nil || err.Error() != test.want {
			t.Errorf("%s: %v", name, err)
		}
	}
	path := script(t, "exit 0\n")
	for _, mode := range []os.FileMode{0o777, 0o775, 0o644} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if err := trusted(path); err == nil {
			t.Errorf("mode %o is trusted", mode)
		}
	}
	if err := os.Chmod(path, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := trusted(path); err != nil {
		t.Error(err)
	}
	if err := os.Chmod(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := trusted(path); err == nil {
		t.Error("a folder that all can write is trusted")
	}
}
