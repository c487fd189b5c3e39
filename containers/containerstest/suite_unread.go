package containerstest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"carma/containers"
)

// testLogsUnread lets a program print more than the engine keeps while nobody reads. The
// engine must keep the requested amount. A reader from the beginning and a reader that
// resumes must both get a mark that output is missing, with its amount if the engine
// counts. Docker does not count, and marks it only if its log files can be read.
func testLogsUnread(t *testing.T, s *suite) {
	const n, keep, entry = 600_000, 1 << 20, 64 // entry is the largest size in bytes of an entry in the driver's own log
	if e, ok := s.d.(interface{ SameFiles() error }); ok && e.SameFiles() != nil {
		t.Skip("the engine's files cannot be read from here")
	}
	if s.img.Lacks.LogBytes {
		t.Skip("the engine decides how much of a log it keeps")
	}
	folder := t.TempDir()
	spec := s.spec("out:0", "gate:/gate/open", "count:"+strconv.Itoa(n))
	spec.User, spec.LogBytes = "0:0", keep
	spec.Mounts = []containers.Mount{{Source: folder, Target: "/gate"}}
	id := s.startSpec(spec)
	ctx, stop := context.WithCancel(s.ctx)
	var first time.Time
	err := s.d.Logs(ctx, id, first, true, func(at time.Time, _ containers.Stream, _ []byte, _ bool) { first = at; stop() })
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("logs: %v", err)
	}
	if err := os.WriteFile(filepath.Join(folder, "open"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	s.wait(id)
	for name, since := range map[string]time.Time{"from the beginning": {}, "from the first line on": first} {
		kept, gone := s.unread(id, since, n)
		if kept < keep/entry || kept > n*2/3 {
			t.Errorf("%s: %d lines are kept of %d", name, kept, n)
		}
		if want := int64(n + 1 - kept); s.d.Name() != "docker" && gone != want || s.d.Name() == "docker" && gone != -1 {
			t.Errorf("%s: %d lines are told to be missing, not %d (Docker: -1)", name, gone, want)
		}
	}
}

// unread reads a log that consists of the numbers 0 to n, one per line, some of which are
// missing at the beginning. It returns the number of lines present and the number
// missing, according to the mark.
func (s *suite) unread(id string, since time.Time, n int) (kept int, before int64) {
	s.Helper()
	last, next, marks := since, -1, 0
	err := s.d.Logs(s.ctx, id, since, false, func(at time.Time, stream containers.Stream, line []byte, _ bool) {
		if !at.After(last) {
			s.Fatalf("%q comes at %v, after %v", line, at, last)
		}
		last = at
		if stream == containers.Missing {
			m, ok := containers.ParseMissing(line)
			before = m.Before
			if m.Before == 0 {
				before = m.Lines
			}
			if marks++; !ok || kept > 0 || marks > 1 {
				s.Fatalf("mark %q, the %d. one, after %d lines", line, marks, kept)
			}
			return
		}
		got, err := strconv.Atoi(string(line))
		if err != nil || kept > 0 && got != next {
			s.Fatalf("line %q, want %d", line, next)
		}
		next = got + 1
		kept++
	})
	if err != nil || next != n+1 {
		s.Fatalf("logs up to %d: %v", next-1, err)
	}
	return kept, before
}
