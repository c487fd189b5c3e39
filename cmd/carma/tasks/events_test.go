package tasks

import (
	"bytes"
	"testing"
	"time"

	"carma/cmd/carma/cli"
	"carma/cmd/carma/pick"
	"carma/runner/api"
)

// TestTell checks that a line is printed for each new phase and attempt, none without a change,
// and none for the state of a task that existed before.
func TestTell(t *testing.T) {
	t.Setenv("TZ", "UTC")
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.Local)
	var out bytes.Buffer
	e := &teller{a: cli.New(nil, &out, nil, ""), chosen: &pick.Selector{User: "ann"}, known: map[int64]state{1: {phase: "queued"}}}
	first := api.Attempt{N: 1, GPUs: []api.GPURef{{Index: 2}}, Launched: noon, Started: noon.Add(time.Second)}
	second := first
	second.N = 2
	code := 0
	for _, task := range []api.Task{
		{ID: 1, Phase: "queued"},
		{ID: 1, Phase: "launching", Attempts: []api.Attempt{first}},
		{ID: 1, Phase: "running", Attempts: []api.Attempt{first}},
		{ID: 1, Phase: "running", Attempts: []api.Attempt{first}, Position: 3},
		{ID: 1, Phase: "running", Attempts: []api.Attempt{first, second}},
		{ID: 1, Phase: "succeeded", Ended: noon.Add(time.Minute), Attempts: []api.Attempt{first, second}, ExitCode: &code},
		{ID: 2, User: "bob", Phase: "queued", Submitted: noon},
		{ID: 4, Phase: "suspended", Suspension: &api.Suspension{By: "ann", Host: 1 << 30, Since: noon.Add(time.Hour)}, Attempts: []api.Attempt{first}},
		{ID: 3, Phase: "held", Submitted: noon, Waits: "it waits for task 1"},
	} {
		if task.User == "" {
			task.User = "ann"
		}
		task.Name = "x"
		if err := e.tell(task); err != nil {
			t.Fatal(err)
		}
	}
	want := `2026-01-02 12:00:00  launching   1  x  ann  on GPU 2
2026-01-02 12:00:01  running     1  x  ann  on GPU 2
2026-01-02 12:00:01  running     1  x  ann  on GPU 2
2026-01-02 12:01:00  succeeded   1  x  ann  attempt 2, after 
2026-01-02 13:00:00  suspended   4  x  ann  suspended by ann; 1.0 GiB in host memory; carma resume 4 brings it back
2026-01-02 12:00:00  held        3  x  ann  it waits for task 1
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
	if _, open := e.known[1]; open || len(e.known) != 3 {
		t.Errorf("known: %v", e.known)
	}
}
