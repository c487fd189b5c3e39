package containerfiles

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"carma/containers"
	"carma/containers/containerstest"
	"carma/mapper"
	"carma/runner/api"

	"github.com/rs/zerolog"
)

// near is an engine that may or may not see the daemon's files.
type near struct {
	*containerstest.Fake
	err error
}

func (n near) SameFiles() error { return n.err }

// TestAdd checks that a container gets the files of its suite, that a mount at the path of a
// file and an engine on another machine are refused, and that the next daemon removes files of
// containers that are gone.
func TestAdd(t *testing.T) {
	n := &near{Fake: containerstest.NewFake()}
	p := New(Config{Driver: n, DataDir: t.TempDir(), Instance: "aa", Work: t.Context(), Log: zerolog.New(zerolog.NewTestWriter(t))})
	files := []api.SuiteFile{{Path: "/run/secrets/../secrets/key", Content: []byte("s"), UID: -1, GID: -1, Mode: 0o400}}
	spec := containers.Spec{Name: "carma-aa-1"}
	if err := p.Add(&spec, files); err != nil {
		t.Fatal(err)
	}
	if len(spec.Mounts) != 1 || spec.Mounts[0].Target != "/run/secrets/key" || !spec.Mounts[0].ReadOnly {
		t.Fatalf("%+v", spec.Mounts)
	}
	if b, err := os.ReadFile(spec.Mounts[0].Source); err != nil || string(b) != "s" {
		t.Errorf("%q, %v", b, err)
	}
	met := containers.Spec{Name: "carma-aa-2", Mounts: []containers.Mount{{Source: "/x", Target: "/run/secrets"}}}
	if err := p.Add(&met, files); !errors.Is(err, containers.ErrInvalid) {
		t.Errorf("with a mount at the file's folder: %v", err)
	}
	n.err = fmt.Errorf("%w: tcp://gpu-3:2375", containers.ErrRemote)
	if err := p.Add(&containers.Spec{Name: "carma-aa-3"}, files); !errors.Is(err, containers.ErrInvalid) {
		t.Errorf("on another machine: %v", err)
	}
	state := mapper.New(mapper.DefaultOptions())
	p.Sweep(state, func(name string) bool { return name == "carma-aa-1" })
	if _, err := os.Stat(spec.Mounts[0].Source); err != nil {
		t.Errorf("the files of a helper: %v", err)
	}
	p.Sweep(state, func(string) bool { return false })
	if _, err := os.Stat(spec.Mounts[0].Source); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the files of a container that is gone: %v", err)
	}
}

// TestAround checks that a path belongs to the innermost mount that contains it, and that a
// mount does not lie in itself.
func TestAround(t *testing.T) {
	list := []containers.Mount{{Target: "/a"}, {Target: "/a/b/"}, {Target: "/ab"}}
	for at, want := range map[string]int{"/a": -1, "/a/x": 0, "/a/b": 0, "/a/b/c": 1, "/a/b/../c": 0, "/abc": -1, "/ab/c": 2, "/": -1} {
		if got := around(list, at); got != want {
			t.Errorf("%s: %d, want %d", at, got, want)
		}
	}
}
