//go:build e2e

package test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"carma/runner/api"
)

// followsBar runs a task that prints a bar without a line end, and checks that an update is
// read before the line ends, also by a daemon that adopts the task, and that the output
// contains the whole bar once. The bar is shorter than the amount that engines buffer.
func (s *server) followsBar() {
	s.t.Helper()
	const updates = 200
	bar := func(i int) string { return fmt.Sprintf("\rstep %d/%d, loss 1.5", i, updates) }
	gate, opened := s.t.TempDir(), 0
	open := func() {
		opened++
		if err := os.WriteFile(filepath.Join(gate, fmt.Sprint(opened)), nil, 0o644); err != nil {
			s.t.Fatal(err)
		}
	}
	args, want := []string{"--mem", "1G", "-v", gate + ":/gate", tool}, ""
	for i := 1; i <= updates; i++ {
		args = append(args, fmt.Sprintf("gate:/gate/%d", i), "rawerr:"+bar(i))
		want += bar(i)
	}
	ref := s.submit(append(args, fmt.Sprintf("gate:/gate/%d", updates+1), "rawerr:\n", "out:done")...)
	s.running(ref)
	follows := func() {
		s.t.Helper()
		latest := time.Now()
		s.sees(ref, "a count", func(_ api.Task, p *api.Progress) bool {
			if p.Done == 0 && time.Since(latest) > time.Second/2 && opened < updates-1 {
				open()
				latest = time.Now()
			}
			return p.Done > 0
		})
		open()
		s.sees(ref, fmt.Sprintf("update %d", opened), func(_ api.Task, p *api.Progress) bool { return p.Done == float64(opened) })
	}
	follows()
	s.kill()
	open()
	s.start()
	follows()
	for opened <= updates {
		open()
	}
	s.succeeded(ref)
	stdout, stderr := s.lines(ref)
	if got := strings.Join(stdout, "\n"); got != "done" {
		s.t.Errorf("stdout %q", got)
	}
	if got := strings.Join(stderr, "\n"); got != want {
		s.t.Errorf("stderr has %d bytes, want %d: %.200q", len(got), len(want), got)
	}
}

// TestBar checks that a progress bar is read from Docker before its line ends.
func TestBar(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.start()
	s.followsBar()
}
