package runner

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"carma/containers"
	"carma/runner/api"
	"carma/runner/request"
)

// TestFilesShown checks that a suite with files is accepted if the engine can mount files of
// the daemon's machine, or does not answer, and is otherwise refused with a message of one
// line.
func TestFilesShown(t *testing.T) {
	n := &near{}
	g := newRig(t, func(g *rig) { n.Fake, g.driver = g.engine, n })
	s := api.Suite{Tasks: map[string]api.Joined{"train": {Files: []api.SuiteFile{{Path: "/run/secrets/key", UID: -1, GID: -1, Mode: 0o400}}}}}
	for want, err := range map[string]error{
		"": nil,
		"secrets and configs: the container engine is not on this machine: tcp://gpu-3:2375, and they are mounted from the daemon's machine; use an engine of this machine (docker-host)": fmt.Errorf("%w: tcp://gpu-3:2375", containers.ErrRemote),
		"secrets and configs: it runs in a container": errors.New("it runs in a container"),
	} {
		n.err = err
		if _, err := g.suites.Put(g.ctx(), ann, "lab", s, true); want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	n.err = containers.ErrUnavailable
	if _, err := g.suites.Put(g.ctx(), ann, "lab", s, true); err != nil {
		t.Errorf("while the engine is away: %v", err)
	}
	if err := g.places.CanGive(); err != nil {
		t.Error(err)
	}
}

// TestFilesMeetMounts: a task is refused at the submission if its mount collides with a
// file of its suite.
func TestFilesMeetMounts(t *testing.T) {
	n := &near{}
	g := newRig(t, func(g *rig) { n.Fake, g.driver = g.engine, n })
	s := api.Suite{Tasks: map[string]api.Joined{"train": {Files: []api.SuiteFile{{Path: "/m/../m/key", UID: -1, GID: -1, Mode: 0o400}}}}}
	if _, err := g.suites.Put(g.ctx(), request.Caller{Name: "root"}, "lab", s, false); err != nil {
		t.Fatal(err)
	}
	g.script("i", printing(0))
	dir := t.TempDir()
	_, err := g.admission.SubmitAll(g.ctx(), request.Caller{Name: "root"}, api.Submission{Group: "lab", Tasks: []api.Submit{{Image: "i", Part: "train", Mem: 1 << 30, Mounts: []api.Mount{{Source: dir, Target: "/m/"}}}}})
	if err == nil || !strings.Contains(err.Error(), "train: file /m/../m/key: its path meets the mount at /m; write a target outside it") {
		t.Errorf("got %v", err)
	}
}
