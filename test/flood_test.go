//go:build e2e

package test

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"carma/runner/api"
)

// TestLogFlood: finding F11. Of what a task prints, all is there, or what is
// missing is noted: kept and noted lines add up to exactly what was printed,
// and the lines that are kept are in order. Also where the daemon is killed in
// the middle and comes back.
func TestLogFlood(t *testing.T) {
	const n = 3_000_000
	for name, c := range map[string]struct {
		flags []string
		whole bool
		kill  bool
	}{
		"within the budget": {[]string{"--log-bytes", "256M", "--output-total", "2G", "--output-task", "1G", "--output-user", "1G"}, true, false},
		"above the budget":  {[]string{"--log-bytes", "16M", "--output-total", "1G"}, false, false},
		"daemon killed":     {[]string{"--log-bytes", "256M", "--output-total", "2G", "--output-task", "1G", "--output-user", "1G"}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, c.flags...)
			s.start()
			ref := s.submit("--name", "flood", "--mem", "1G", tool, fmt.Sprint("count:", n))
			if c.kill {
				s.running(ref)
				s.kill()
				s.engine.until(t, s.instance(), "the end of the flood", func(list []life) bool {
					return len(list) == 1 && !list[0].died.IsZero()
				})
				s.start()
			}
			s.succeeded(ref)
			kept, noted, next := 0, 0, 1
			_, err := s.api.Logs(t.Context(), ref, api.LogOptions{}, func(l api.LogLine) error {
				if l.Stream == "carma" {
					k := 0
					if _, err := fmt.Sscanf(l.Line, "%d lines", &k); err != nil || !strings.Contains(l.Line, "left out here: a log is limited to") {
						t.Errorf("note %q", l.Line)
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
			if err != nil || kept+noted != n || c.whole != (noted == 0) {
				t.Errorf("%d lines kept, %d noted of %d, %v", kept, noted, n, err)
			}
			if left, _ := filepath.Glob(filepath.Join(s.dir, "logs", "*")); len(left) != 1 {
				t.Errorf("output folders %v", left)
			}
		})
	}
}
