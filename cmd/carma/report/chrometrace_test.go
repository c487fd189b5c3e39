package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/mapper/sim"
)

// TestChromeTrace: spans lie beside each other in lanes, a suspended task has an arrow to
// its resumption, and counters hold all their values at each change.
func TestChromeTrace(t *testing.T) {
	s := func(n units.Instant) units.Instant { return 1000 + n*1e9 }
	line := &sim.Timeline{
		Start: s(0), End: s(100),
		GPUs: []sim.GPUTimeline{
			{Index: 0, Model: "A100", Reserved: sim.Curve{{At: s(0), Value: 2 << 30}, {At: s(9), Value: 0}}, Used: sim.Curve{{At: s(5), Value: 1 << 30}}, SMACT: sim.Curve{{At: s(5), Value: 0.5}}},
			{Index: 1, Model: "A100"},
		},
		Queue: sim.Curve{{At: s(0), Value: 3}},
		Spans: []sim.Span{
			{Task: 1, Name: "a", GPU: 0, Attempt: 1, Launched: s(0), Started: s(1), Ended: s(10), Outcome: sim.OutcomeAway},
			{Task: 2, Name: "b", GPU: 0, Attempt: 1, Launched: s(2), Started: s(3), Ended: s(12), Outcome: sim.OutcomeOOM},
			{Task: 1, Name: "a", GPU: 1, Attempt: 1, Launched: s(20), Started: s(21), Ended: s(30), Outcome: sim.OutcomeOK},
		},
	}
	var b bytes.Buffer
	run := Run{Policy: "magm", Timeline: line, Tasks: []Task{{ID: 1, Name: "first", Kind: "resnet50", Phase: model.Succeeded}}}
	if err := WriteChromeTrace(&b, []Data{{Trace: "t", Runs: []Run{run, {Policy: "without"}}}}); err != nil {
		t.Fatal(err)
	}
	var got struct{ TraceEvents []traceEvent }
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatalf("%v in\n%s", err, b.String())
	}
	var text string
	for _, e := range got.TraceEvents {
		text += fmt.Sprintf("%s %s %v+%v %d/%d %s\n", e.Ph, e.Name, e.TS/1e6, e.Dur/1e6, e.PID, e.TID, mustText(e.Args))
	}
	const want = `M process_name 0+0 1/0 {"name":"t, magm: queue"}
M process_sort_index 0+0 1/0 {"sort_index":1}
C tasks that wait 0+0 1/0 {"waiting":3}
M process_name 0+0 2/0 {"name":"t, magm: GPU 0 A100"}
M process_sort_index 0+0 2/0 {"sort_index":2}
C memory, GiB 0+0 2/0 {"reserved":2,"used":0}
C memory, GiB 5+0 2/0 {"reserved":2,"used":1}
C memory, GiB 9+0 2/0 {"reserved":0,"used":1}
C SM activity, % 5+0 2/0 {"SM activity":50}
M process_name 0+0 3/0 {"name":"t, magm: GPU 1 A100"}
M process_sort_index 0+0 3/0 {"sort_index":3}
X 1 first 0+10 2/1 {"attempt":1,"kind":"resnet50","outcome":"suspended","task":1}
s suspended 9.9999995+0 2/1 null
X 2 b 2+10 2/2 {"attempt":1,"outcome":"out of GPU memory","task":2}
X 1 first 20+10 3/1 {"attempt":1,"kind":"resnet50","outcome":"ok","task":1}
f suspended 20+0 3/1 null
`
	if text != want {
		t.Errorf("%s\nwant\n%s", text, want)
	}
}

func mustText(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}
