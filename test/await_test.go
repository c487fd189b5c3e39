//go:build e2e

package test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"carma/internal/units"

	"carma/runner/api"
)

// patience is the time that a test waits for something that must happen. No test measures
// it: it only bounds how long a failure takes on a slow machine.
const patience = 3 * time.Minute

// until waits until a task satisfies a condition.
func (s *server) until(ref, what string, ok func(*api.Task) bool) api.Task {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	var last api.Task
	met := false
	err := s.api.Watch(ctx, ref, func(t api.Task) error {
		last = t
		if met = ok(&t); met {
			return api.ErrStop
		}
		return nil
	})
	if err != nil || !met {
		s.t.Fatalf("task %s: waiting for %s: %v; it is %s %+v", ref, what, err, last.Phase, last.Attempts)
	}
	return last
}

func (s *server) running(ref string) api.Task {
	s.t.Helper()
	return s.until(ref, "its start", func(t *api.Task) bool { return t.Phase == "running" })
}

// holds waits until a task has taken this much memory of a GPU. A simulated task
// that has all its memory does not need the daemon any more.
func (s *server) holds(ref string, memory units.Bytes) {
	s.t.Helper()
	id := s.running(ref).ID
	eventually(s.t, fmt.Sprintf("task %s holds %s", ref, memory), func() bool {
		gpus, err := s.api.GPUs(s.t.Context())
		if err != nil {
			s.t.Fatal(err)
		}
		for _, g := range gpus {
			for _, r := range g.Tasks {
				if r.Task == id && r.Used >= int64(memory) {
					return true
				}
			}
		}
		return false
	})
}

func (s *server) finished(ref string) api.Task {
	s.t.Helper()
	return s.until(ref, "its end", (*api.Task).Finished)
}

// succeeded waits until tasks have finished, and fails the test for each that failed.
func (s *server) succeeded(refs ...string) (list []api.Task) {
	s.t.Helper()
	for _, ref := range refs {
		t := s.finished(ref)
		if t.Phase != "succeeded" {
			s.t.Errorf("task %s (%s) has %s: %s", ref, t.Name, t.Phase, t.Reason)
		}
		list = append(list, t)
	}
	return list
}

// eventually waits for a condition that no event reports.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); !ok(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s", what, patience)
		}
	}
}

// stream collects the output of a process. Readers may wait for more.
type stream struct {
	mu      sync.Mutex
	text    bytes.Buffer
	changed chan struct{} // closed at the next write, or nil if nobody waits
}

func (s *stream) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
	return s.text.Write(b)
}

func (s *stream) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// await waits for words in the output after its first bytes. If the process ends
// without them, the test fails.
func (s *stream) await(t *testing.T, words string, after int, ended <-chan struct{}) {
	t.Helper()
	deadline := time.After(patience)
	for {
		s.mu.Lock()
		found := strings.Contains(s.text.String()[after:], words)
		if s.changed == nil {
			s.changed = make(chan struct{})
		}
		changed := s.changed
		s.mu.Unlock()
		if found {
			return
		}
		select {
		case <-changed:
			continue
		case <-ended: // its output is complete now
		case <-deadline:
		}
		if text := s.String()[after:]; !strings.Contains(text, words) {
			t.Fatalf("no %q came in %s, but %q", words, patience, text)
		}
		return
	}
}
