package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"carma/mapper/units"

	"carma/configs/traces"
	"carma/configs/workloads"
	"carma/estimator"
	"carma/estimator/booking"
	"carma/runner/api"
)

func TestWords(t *testing.T) {
	for n, want := range map[int]string{1: "1st", 2: "2nd", 3: "3rd", 4: "4th", 11: "11th", 12: "12th", 13: "13th", 21: "21st", 111: "111th", 102: "102nd"} {
		if got := ordinal(n); got != want {
			t.Errorf("%d is %s", n, got)
		}
	}
	for d, want := range map[time.Duration]string{
		-time.Hour: "0s", 0: "0s", 1400 * time.Millisecond: "1s", 59 * time.Second: "59s", 61 * time.Second: "1m01s", 599 * time.Second: "9m59s",
		600 * time.Second: "10m", 3599 * time.Second: "59m", time.Hour: "1h00m", 26 * time.Hour: "1d02h", 2000 * time.Hour: "83d08h",
	} {
		if got := age(d); got != want {
			t.Errorf("%s is %s, want %s", d, got, want)
		}
	}
	for d, want := range map[time.Duration]string{0: "0s", 1500 * time.Millisecond: "1.5s", 70 * time.Second: "1m10s", 25325 * time.Second: "7h02m05s"} {
		if got := exact(d); got != want {
			t.Errorf("%s is %s, want %s", d, got, want)
		}
	}
}

func TestTaskCode(t *testing.T) {
	code := func(n int) *int { return &n }
	for _, tt := range []struct {
		phase string
		code  *int
		want  int
	}{
		{"succeeded", code(0), 0}, {"succeeded", nil, 0}, {"failed", code(3), 3}, {"failed", code(124), 124}, {"failed", code(137), 137},
		{"failed", code(0), 1}, {"failed", nil, 125}, {"cancelled", nil, 1}, {"cancelled", code(143), 143}, {"cancelled", code(0), 1}, {"failed", code(300), 1},
	} {
		if got := taskCode(&api.Task{Phase: tt.phase, ExitCode: tt.code}); got != tt.want {
			t.Errorf("%s %v: got %d, want %d", tt.phase, tt.code, got, tt.want)
		}
	}
}

// However long the names, however many GPUs: the tables fit, and every task
// on a GPU is there by number.
func TestTablesFit(t *testing.T) {
	long := strings.Repeat("long-name-", 20)
	var gpus []api.GPU
	var list []api.Task
	for i := range 8 {
		g := api.GPU{GPURef: api.GPURef{Index: i, UUID: long}, Model: "NVIDIA H100 80GB HBM3 " + long, Capacity: int64(80 * units.GiB), Reserved: int64(79.5 * float64(units.GiB)), SMACT: 1, PowerW: 700}
		for n := range 3 {
			g.Tasks = append(g.Tasks, api.Resident{Task: int64(100*i + n + 1), Name: long})
		}
		gpus = append(gpus, g)
		task := api.Task{
			ID: int64(100_000 + i), Name: long, User: long, Phase: "recovering", GPUCount: 16, Need: int64(79 * units.GiB), Position: 10_000, Waits: long + "\n\x1b[31m", Submitted: noon.Add(-2000 * time.Hour),
		}
		if i%2 == 0 {
			task.Phase = "running"
			task.Attempts = []api.Attempt{{N: 1, Outcome: "infrastructure"}, {N: 2, GPUs: make([]api.GPURef, 16)}}
		}
		list = append(list, task)
	}
	gpus[7].TemperatureC, gpus[7].Coarse = 100, true
	for _, width := range []int{80, 81, 100, 132, 200} {
		for name, table := range map[string]*table{"ps": taskTable(list, noon), "gpus": gpuTable(gpus, width, false)} {
			var b bytes.Buffer
			if err := table.write(&b, width); err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(b.String()) {
				if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
					t.Errorf("%s at %d columns is %d wide: %s", name, width, n, line)
				}
			}
			if strings.ContainsAny(b.String(), "\x1b\r") || strings.Count(b.String(), "\n") != 9 {
				t.Errorf("%s: %q", name, b.String())
			}
			if name == "gpus" && !strings.Contains(b.String(), "701, 702, 703") && !strings.Contains(b.String(), "703 long") {
				t.Errorf("not every task is there:\n%s", b.String())
			}
		}
	}
}

func TestProgress(t *testing.T) {
	for _, tt := range []struct {
		task api.Task
		want string
	}{
		{api.Task{Phase: "estimating"}, "estimating its memory"},
		{api.Task{Phase: "held", Waits: "it waits for task 17 to succeed"}, "held: it waits for task 17 to succeed"},
		{api.Task{Phase: "queued", Position: 2, Waits: "GPU 0 is full"}, "queued, 2nd; waits because: GPU 0 is full"},
		{api.Task{Phase: "recovering", Position: 1}, "recovering, 1st"},
		{api.Task{Phase: "launching", Attempts: []api.Attempt{{GPUs: []api.GPURef{{Index: 1}, {Index: 3}}}}}, "starting on GPUs 1,3"},
		{api.Task{Phase: "running"}, ""}, {api.Task{Phase: "failed"}, ""},
	} {
		if got := progress(&tt.task); got != tt.want {
			t.Errorf("%s: %q", tt.task.Phase, got)
		}
	}
}

// The status line is replaced in place, gone before anything else is printed,
// never in the middle of a task's line, and never there without a terminal.
func TestConsole(t *testing.T) {
	const erase = "\r\x1b[K"
	t.Setenv("COLUMNS", "40")
	script := func(c *console) {
		c.status("waits")
		c.status("waits still, " + strings.Repeat("x", 100))
		_ = c.line(api.LogLine{Stream: "stdout", Line: "one"})
		c.status("again")
		c.status("")
		_ = c.line(api.LogLine{Stream: "stdout", Line: "two", Partial: true})
		c.status("not now")
		_ = c.line(api.LogLine{Stream: "stdout", Line: " halves"})
		_ = c.line(api.LogLine{Stream: "stderr", Line: "half", Partial: true})
		c.say("stopping %d", 7)
		_ = c.line(api.LogLine{Stream: "carma", Line: "runs\nagain"})
	}
	var screen bytes.Buffer
	script(&console{out: &screen, err: &screen, live: true})
	want := "waits" + erase + "waits still, " + strings.Repeat("x", 24) + "…" + erase + "one\nagain" + erase + "two halves\nhalf\ncarma: stopping 7\ncarma: runs again\n"
	if screen.String() != want {
		t.Errorf("terminal:\n got %q\nwant %q", screen.String(), want)
	}
	var out, err bytes.Buffer
	script(&console{out: &out, err: &err})
	if out.String() != "one\ntwo halves\n" || err.String() != "halfcarma: stopping 7\ncarma: runs again\n" {
		t.Errorf("piped: %q %q", out.String(), err.String())
	}
}

// Every workload, model and trace that ships can be estimated by name.
func TestCatalogue(t *testing.T) {
	c := booking.NewCatalogue()
	estimate := func(q estimator.Query) estimator.Estimate {
		t.Helper()
		e, err := c.Estimate(q)
		if err != nil {
			t.Errorf("%+v: %v", q, err)
		}
		return e
	}
	for _, p := range workloads.All() {
		m, err := p.Campaign("")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range append([]string{p.Name}, p.Aliases...) {
			if e := estimate(estimator.Query{Model: name, GPUs: p.GPUs}); e.Point != m.Memory {
				t.Errorf("%s: %+v, measured %s", name, e, m.Memory)
			}
		}
		if e := estimate(estimator.Query{Model: p.Model, Batch: p.BatchSize, GPUs: p.GPUs}); e.Point < m.Memory {
			t.Errorf("%s at %d: %+v, measured %s", p.Model, p.BatchSize, e, m.Memory)
		}
	}
	for _, name := range traces.Names() {
		trace, err := traces.Read(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, task := range trace.Tasks {
			p, _ := workloads.Find(task.Workload)
			m, _ := p.Campaign(trace.Campaign)
			if e := estimate(estimator.Query{Model: booking.InCampaign(task.Workload, trace.Campaign)}); e.Point != m.Memory {
				t.Errorf("%s, %s: %+v, measured %s", name, task.Workload, e, m.Memory)
			}
		}
	}
	if e := estimate(estimator.Query{Model: "bert-base-uncased", Batch: 32}); e.WholeGPU {
		t.Errorf("%+v", e)
	}
	if _, err := c.Estimate(estimator.Query{Model: "resnet5"}); err == nil || !strings.Contains(err.Error(), "resnet50") {
		t.Errorf("%v", err)
	}
	for _, name := range c.Names() {
		if strings.Contains(name, "@") {
			t.Errorf("%s is suggested", name)
		}
	}
}

// A lost submission, a restart, an error: what is retried and what is not.
func TestPatience(t *testing.T) {
	var said []string
	p := &patience{limit: 0, notice: func(f string, args ...any) { said = append(said, fmt.Sprintf(f, args...)) }}
	gone := &api.NoDaemonError{Socket: "s"}
	if err := p.retry(t.Context(), gone); err != gone {
		t.Errorf("beyond the limit: %v", err)
	}
	p.limit, p.since = time.Hour, time.Time{}
	wrong := &api.StatusError{Status: 422}
	if err := p.retry(t.Context(), wrong); err != wrong {
		t.Errorf("an answer: %v", err)
	}
	answers := []error{gone, &api.StatusError{Status: 503}, nil}
	err := p.do(t.Context(), func() error {
		err := answers[0]
		answers = answers[1:]
		return err
	})
	if err != nil || len(answers) != 0 {
		t.Errorf("%v, left %v", err, answers)
	}
	want := []string{"lost the daemon; trying again for 0s", "lost the daemon; trying again for 1h0m0s", "the daemon is back"}
	if fmt.Sprint(said) != fmt.Sprint(want) {
		t.Errorf("said %q", said)
	}
}

// TestHelpGroups: carma --help shows each command once, and none that is not.
func TestHelpGroups(t *testing.T) {
	listed := map[string]int{}
	for _, g := range groups {
		for _, name := range g.names {
			listed[name]++
		}
	}
	for _, c := range newApp(nil, nil, nil).root().Commands() {
		if c.Hidden {
			continue
		}
		if listed[c.Name()] != 1 {
			t.Errorf("carma %s is in %d groups of help.go", c.Name(), listed[c.Name()])
		}
		delete(listed, c.Name())
	}
	for name := range listed {
		t.Errorf("help.go lists carma %s, which is not there", name)
	}
}
