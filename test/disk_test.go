//go:build e2e

package test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"carma/runner/api"
)

// TestFullDisk fills the disk of the data folder. Submissions are refused, but
// tasks are stopped, removed and end. The daemon starts after kill -9, and no
// accepted task is lost.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	needRoot(t)
	s := newServer(t, "--speed", "60")
	s.mount("16m")
	s.start()
	gate := filepath.Join(s.root, "gate")
	if err := os.Mkdir(gate, 0o755); err != nil {
		t.Fatal(err)
	}
	trains := s.submit("--name", "trains", "--mem", "8G", image, "resnet50-imagenet-bs64", "--time", "1h")
	talks := s.submit("--name", "talks", "--mem", "1G", "-v", gate+":/gate", tool, "lines:3", "gate:/gate/open", "lines:2000")
	leaves := s.submit("--name", "leaves", "--mem", "1G", tool, "block:143")
	s.holds(trains, peak)
	s.running(leaves)
	s.running(talks)
	accepted := []string{trains, talks}

	filler := s.fill()
	// A few more fit into the space that the journal has allocated already.
	submit := []string{"run", "-d", "--mem", "1G", tool, "out:accepted"}
	var refusal result
	for range 2000 {
		if refusal = s.carma(submit...); refusal.code != 0 {
			break
		}
		accepted = append(accepted, strings.TrimSpace(refusal.out))
	}
	refusal.refused(t, 2, "disk is full")
	s.logged("the journal lives on its spare room")
	s.fill()
	s.carma(submit...).refused(t, 2, "disk is full")
	if r := s.carma("doctor"); r.code != 1 || !strings.Contains(r.out, "failure  disk") {
		t.Errorf("on a full disk: %v", r)
	}
	if out := s.ok("ps", "-q"); !slices.Contains(split(out), talks) {
		t.Errorf("carma ps -q on a full disk: %q", out)
	}

	// Tasks are stopped, removed and end. All of that is written.
	s.ok("stop", leaves)
	if task := s.finished(leaves); task.Phase != "cancelled" {
		t.Errorf("the stopped task is %s", task.Phase)
	}
	s.ok("rm", leaves)
	if err := os.WriteFile(filepath.Join(gate, "open"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if task := s.finished(talks); task.Phase != "succeeded" {
		t.Errorf("the end of task %s on a full disk: %s (%s)", talks, task.Phase, task.Reason)
	}

	// The next daemon starts on the full disk and knows all of it.
	s.fill()
	s.kill()
	s.fill()
	s.start()
	s.running(trains)
	if task := s.inspect(talks); task.Phase != "succeeded" {
		t.Errorf("after kill -9, task %s is %s", talks, task.Phase)
	}
	if r := s.carma("inspect", leaves); r.code == 0 {
		t.Errorf("after kill -9, the task that was removed is back: %s", r.out)
	}
	s.carma(submit...).refused(t, 2, "disk is full")

	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	s.until(talks, "its end in the journal", (*api.Task).Finished)
	s.speed(6000)
	s.succeeded(accepted...)
	again := s.submit("--mem", "1G", tool, "out:again")
	s.succeeded(again)
	if v := s.verified(); v.Succeeded != len(accepted)+1 || v.Submitted != v.Succeeded+1 || v.Launches != v.Submitted {
		t.Errorf("the journal has %+v, want the %d that were accepted and one that was stopped, launched once each", v, len(accepted)+1)
	}
	if out := split(s.ok("ps", "-a", "-q")); len(out) != len(accepted)+1 {
		t.Errorf("carma ps -a lists %d tasks, %d were accepted", len(out), len(accepted)+1)
	}
	if r := s.carma("doctor"); !strings.Contains(r.out, "warning  disk") && !strings.Contains(r.out, "failure  disk") {
		t.Errorf("with 16 MiB free: %v", r)
	}
}

// mount mounts a small disk on the data folder.
func (s *server) mount(size string) {
	s.t.Helper()
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		s.t.Fatal(err)
	}
	err := syscall.Mount("tmpfs", s.dir, "tmpfs", 0, "mode=755,size="+size)
	if errors.Is(err, syscall.EPERM) {
		s.t.Skip("no permission to mount")
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.mounted = true
}

// fill uses all free space on the data folder's disk, also space freed since the
// last call.
func (s *server) fill() (path string) {
	s.t.Helper()
	f, err := os.OpenFile(filepath.Join(s.dir, "filler"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	for block := make([]byte, 64<<10); len(block) > 0; {
		if _, err := f.Write(block); errors.Is(err, syscall.ENOSPC) {
			block = block[:len(block)/2]
		} else if err != nil {
			s.t.Fatal(err)
		}
	}
	return f.Name()
}
