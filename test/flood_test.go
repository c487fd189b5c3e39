//go:build e2e

package test

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"carma/runner/api"
)

// floodLines returns the number of lines in a flood: LINES, or few enough for CI. Finding
// F11 has 3,000,000; make test-faults sets that.
func floodLines(t *testing.T) int {
	t.Helper()
	n, err := strconv.Atoi(cmp.Or(os.Getenv("LINES"), "300000"))
	if err != nil || n < 300_000 {
		t.Fatalf("LINES=%s: write a number from 300000 on", os.Getenv("LINES"))
	}
	return n
}

// TestLogFlood (finding F11): a task's output is complete, or marks say how much is
// missing. The kept and the missing lines add up to exactly the printed number, and the
// kept lines are in order. This holds also if the daemon is killed and started again
// meanwhile.
func TestLogFlood(t *testing.T) {
	n := floodLines(t)
	// A line has 48 bytes in our log and 77 in the engine's, which keeps at least twice the
	// budget. The engine must keep all output, because a reader on a busy machine may be late, and
	// the amount that the engine deletes is unknown.
	all, some := fmt.Sprint(90*n), fmt.Sprint(42*n)
	for name, c := range map[string]struct {
		keep  string
		whole bool
		kill  bool
	}{
		"within the budget": {all, true, false},
		"above the budget":  {some, false, false},
		"daemon killed":     {all, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, "--log-bytes", c.keep+"B", "--output-task", "1G", "--output-user", "1G", "--output-total", "2G")
			s.start()
			ref := s.submit("--name", "flood", "--mem", "1G", tool, fmt.Sprint("count:", n))
			if c.kill {
				s.reached(ref, n/10)
				s.kill()
				s.engine.until(t, s.instance(), "the end of the flood", func(list []life) bool {
					return len(list) == 1 && !list[0].died.IsZero()
				})
				s.start()
			}
			s.succeeded(ref)
			if kept, noted := s.flood(ref); kept+noted != n || c.whole != (noted == 0) {
				t.Errorf("%d lines kept, %d noted of %d", kept, noted, n)
			}
			if left, _ := filepath.Glob(filepath.Join(s.dir, "logs", "*")); len(left) != 1 {
				t.Errorf("output folders %v", left)
			}
		})
	}
}

// reached waits until a task has printed a number.
func (s *server) reached(ref string, number int) {
	s.t.Helper()
	met := errors.New("met")
	_, err := s.api.Logs(s.t.Context(), ref, api.LogOptions{Follow: true}, func(l api.LogLine) error {
		if got, err := strconv.Atoi(l.Line); err == nil && got >= number {
			return met
		}
		return nil
	})
	if !errors.Is(err, met) {
		s.t.Fatalf("task %s has not printed %d: %v", ref, number, err)
	}
}

// flood reads the output of a task that counts from 1. It returns how many lines
// are there and how many its notes report as missing. Each line must be the right
// one at its place.
func (s *server) flood(ref string) (kept, noted int) {
	s.t.Helper()
	next := 1
	_, err := s.api.Logs(s.t.Context(), ref, api.LogOptions{}, func(l api.LogLine) error {
		if l.Stream == "carma" {
			k := 0
			if _, err := fmt.Sscanf(l.Line, "%d lines", &k); err != nil || !strings.Contains(l.Line, "left out here: ") {
				return fmt.Errorf("note %q", l.Line)
			}
			noted += k
			next += k
			return nil
		}
		if l.Line != strconv.Itoa(next) {
			return fmt.Errorf("%q comes where %d should", l.Line, next)
		}
		kept++
		next++
		return nil
	})
	if err != nil {
		s.t.Errorf("task %s, after %d lines kept and %d noted: %v", ref, kept, noted, err)
	}
	return kept, noted
}
