package suite

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"time"

	"carma/runner/api"
)

// TestHelperTable checks that a table shows the allocations for helpers if it is wide enough,
// and always if the output is a pipe.
func TestHelperTable(t *testing.T) {
	s := &api.SuiteState{Helpers: []api.HelperState{
		{Name: "lab-db-1", Image: "postgres:17", State: "running", HostMem: 4 << 30, CPUs: 2, HostReserve: 1 << 29, CPUsReserve: 0.5},
		{Name: "lab-web-1", Image: "grafana", State: "running", HostMem: 1 << 30, HostReserve: 256 << 20},
	}}
	for width, wide := range map[int]bool{0: true, 99: false, 100: true} {
		var out bytes.Buffer
		if err := helperTable(s, time.Now(), width).Write(&out, width); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(regexp.MustCompile(" +").ReplaceAllString(out.String(), " "), "\n")
		want := []string{"HELPER IMAGE STATE UP MEM CPUS ADDRESS", "lab-db-1 postgres:17 running - 4.0 2", "lab-web-1 grafana running - 1.0 -"}
		if wide {
			want = []string{"HELPER IMAGE STATE UP MEM CPUS MEM-BOOKED CPUS-BOOKED ADDRESS", "lab-db-1 postgres:17 running - 4.0 2 0.5 0.5", "lab-web-1 grafana running - 1.0 - 0.2 -"}
		}
		for i := range want {
			if strings.TrimSpace(lines[i]) != want[i] {
				t.Errorf("%d wide: %q, want %q", width, lines[i], want[i])
			}
		}
	}
}
