package replay

import (
	"strings"
	"testing"

	"carma/configs/servers"
	"carma/configs/traces"
	"carma/mapper/policy"
	"carma/mapper/sim"
	"carma/mapper/sim/study"
)

// TestReplayTablesFit checks that the table fits its width for any trace.
func TestReplayTablesFit(t *testing.T) {
	server, err := study.Server("sim:"+servers.Default, 1024)
	if err != nil {
		t.Fatal(err)
	}
	v := &part{Study: &study.Study{Server: server}}
	long := sim.Metrics{Summary: sim.Summary{
		Tasks: 100_000, OOMs: 99_999, Makespan: 9999 * 3600e9, MeanJCT: 9999 * 3600e9, P95JCT: 9999 * 3600e9,
		MeanWaiting: 9999 * 3600e9, MeanExecution: 999 * 3600e9, WorstSlowdown: 99.99,
	}, LostGPUTime: 9999 * 3600e9, EnergyJ: 9999e6}
	long.LowerBound = long.Makespan
	r := &study.Replayed{Trace: traces.Trace{Name: strings.Repeat("trace", 30)}}
	for _, p := range policy.Names() {
		r.Outcomes = append(r.Outcomes, study.Outcome{Policy: p, Result: sim.Result{Metrics: long}})
	}
	r.Outcomes = append(r.Outcomes, study.Outcome{Policy: strings.Repeat("preset", 20), Result: sim.Result{Metrics: long}})
	r.Reference = &r.Outcomes[0]
	var out widest
	if err := v.print(&out, r); err != nil {
		t.Fatal(err)
	}
	if out.most > width {
		t.Errorf("%d wide", out.most)
	}
}

// widest measures the lines that are written to it, in characters.
type widest struct{ line, most int }

func (w *widest) Write(b []byte) (int, error) {
	for _, c := range string(b) {
		if w.line++; c == '\n' {
			w.line = 0
		}
		w.most = max(w.most, w.line)
	}
	return len(b), nil
}
