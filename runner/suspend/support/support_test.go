package support

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"carma/mapper/model"
	"carma/runner/gpu"

	"github.com/rs/zerolog"
)

// TestKind checks where tasks can be suspended by the settings, the driver and the GPU.
func TestKind(t *testing.T) {
	for _, c := range []struct {
		name string
		o    *Options
		d    gpu.Device
		kind model.SuspendKind
		why  string
	}{
		{"no settings", nil, gpu.Device{}, model.SuspendNever, "a reason"},
		{"off", &Options{Driver: "580.65", Arch: "amd64", Off: true}, gpu.Device{}, model.SuspendNever, "off in the configuration"},
		{"old driver", &Options{Driver: "550.54", Arch: "amd64"}, gpu.Device{}, model.SuspendNever, "570 or newer"},
		{"MIG", &Options{Driver: "580.65", Arch: "amd64", Move: true}, gpu.Device{Parent: "GPU-a"}, model.SuspendNever, "MIG"},
		{"here", &Options{Driver: "580.65", Arch: "amd64"}, gpu.Device{}, model.SuspendHere, "suspend: here"},
		{"move", &Options{Driver: "580.65", Arch: "amd64", Move: true}, gpu.Device{}, model.SuspendMove, ""},
	} {
		kind, alone, why := New(c.o, "a reason", false).Kind(c.d, true)
		if kind != c.kind || alone != (kind != model.SuspendNever) || !strings.Contains(why, c.why) {
			t.Errorf("%s: %q, alone %v, %q", c.name, kind, alone, why)
		}
	}
}

// TestFind checks that nothing is suspended before Ready has returned nil, and that the
// daemon learns of it then.
func TestFind(t *testing.T) {
	answer := errors.New("no library")
	s := New(&Options{Driver: "580.65", Arch: "amd64", Ready: func(context.Context) error { return answer }}, "", false)
	if kind, _, why := s.Kind(gpu.Device{}, false); kind != model.SuspendNever || why != notAsked {
		t.Errorf("before: %q, %q", kind, why)
	}
	s.set(answer)
	if kind, _, why := s.Kind(gpu.Device{}, false); kind != model.SuspendNever || why != "no library" {
		t.Errorf("after an error: %q, %q", kind, why)
	}
	answer = nil
	found := 0
	s.Find(t.Context(), zerolog.Nop(), func() { found++ })
	if kind, _, _ := s.Kind(gpu.Device{}, false); kind != model.SuspendHere || found != 1 {
		t.Errorf("after it works: %q, told %d times", kind, found)
	}
}

// TestLacks checks what the daemon needs of the machine.
func TestLacks(t *testing.T) {
	mine, other := t.TempDir(), t.TempDir()
	if err := errors.Join(os.MkdirAll(filepath.Join(mine, "proc"), 0o755), os.MkdirAll(filepath.Join(mine, "sys/fs/cgroup"), 0o755), os.WriteFile(filepath.Join(mine, "sys/fs/cgroup/cgroup.controllers"), nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	if why, _ := lacks(1000, mine); !strings.Contains(why, "is not root") {
		t.Errorf("another user: %q", why)
	}
	if why, mend := lacks(0, mine); why != "" || mend != "" {
		t.Errorf("all is there: %q, %q", why, mend)
	}
	if err := errors.Join(os.MkdirAll(filepath.Join(other, "proc/self/ns"), 0o755), os.Symlink("pid:[4026539999]", filepath.Join(other, "proc/self/ns/pid"))); err != nil {
		t.Fatal(err)
	}
	if why, _ := lacks(0, other); !strings.Contains(why, "PID namespace of its own") {
		t.Errorf("in a namespace: %q", why)
	}
}
