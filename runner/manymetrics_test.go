package runner

import (
	"fmt"
	"net/http/httptest"
	"testing"

	"carma/internal/units"
	"carma/runner/api"
	"carma/runner/metrics"
)

// TestMetricsOfManyTasks: a scrape of 16 GPUs and 500 tasks is fast. The test prints the time;
// its limit is far higher, for busy machines.
func TestMetricsOfManyTasks(t *testing.T) {
	long(t)
	g := newRig(t, func(g *rig) { g.cards = newCards(16, 40*units.GiB) })
	g.script("long:1", untilStopped)
	var s api.Submission
	for i := range 500 {
		s.Tasks = append(s.Tasks, api.Submit{Image: "long:1", Name: fmt.Sprintf("task-%d", i), Mem: int64(18 * units.GiB), HostMem: int64(64 * units.MiB)})
	}
	if _, err := g.api.SubmitAll(g.ctx(), s); err != nil {
		t.Fatal(err)
	}
	g.running("task-20")
	h := g.pages.Handler(metrics.WithNames)
	size := 0
	cost := testing.Benchmark(func(b *testing.B) {
		for b.Loop() {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
			if size = w.Body.Len(); w.Code != 200 || size < 50_000 {
				b.Fatal(w.Code, size)
			}
		}
	})
	t.Logf("%s and %d KB of memory a page of %d KB", cost, cost.AllocedBytesPerOp()/1000, size/1000)
	if ms := cost.NsPerOp() / 1e6; ms > 300 {
		t.Errorf("a page takes %d ms", ms)
	}
}
