package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"carma/runner/api"
)

// sessionAt returns a session without a card that writes to a folder.
func sessionAt(t *testing.T, phases ...string) (*session, *bytes.Buffer) {
	t.Helper()
	var file bytes.Buffer
	return &session{
		options: options{out: t.TempDir(), minutes: 10, phases: phases},
		log:     io.Discard, file: &file, began: time.Now(),
	}, &file
}

// watched is a writer that calls do when a line contains a text.
type watched struct {
	at, saw string
	do      func() string
}

func (w *watched) Write(b []byte) (int, error) {
	if strings.Contains(string(b), w.at) {
		w.saw = w.do()
	}
	return len(b), nil
}

// The results of a phase are in the report before the next phase begins, so a
// program that is killed then has lost nothing.
func TestReportAfterEachPhase(t *testing.T) {
	dir := t.TempDir()
	var stderr watched
	stderr.at, stderr.do = "suite: at most", func() string {
		b, _ := os.ReadFile(filepath.Join(dir, "report.md"))
		return string(b)
	}
	args := []string{"--dry-run", "--no-containers", "--python", "/nowhere/python3", "--out", dir, "--phases", "environment,suite"}
	if code := run(t.Context(), args, &stderr); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	seen := stderr.saw
	if !strings.Contains(seen, "| kernel | ") || !strings.Contains(seen, "Not measured here: the program ended before.") {
		t.Errorf("the report while the suite ran:\n%s", seen)
	}
	b, err := os.ReadFile(filepath.Join(dir, "report.md"))
	if err != nil || strings.Contains(string(b), "the program ended before") {
		t.Errorf("the report at the end: %v\n%s", err, b)
	}
}

// The environment phase has a minute, however short the run: without a context no
// estimate can be scored.
func TestEnvironmentHasTime(t *testing.T) {
	s, _ := sessionAt(t, phaseNames...)
	s.minutes = 2
	if got := s.share(0); got < 55*time.Second {
		t.Errorf("%s for the environment of a run of 2 minutes", got)
	}
}

// A task that cannot start is given up after two failures, with the cause. A task whose
// program failed is not given up, and neither is one that runs again after one failure.
func TestStuck(t *testing.T) {
	attempt := func(outcome string) api.Attempt { return api.Attempt{Outcome: outcome, Message: "no such device"} }
	for _, c := range []struct {
		attempts []api.Attempt
		want     string
	}{
		{nil, ""},
		{[]api.Attempt{attempt("infrastructure")}, ""},
		{[]api.Attempt{attempt("infrastructure"), attempt("")}, ""},
		{[]api.Attempt{attempt("infrastructure"), attempt("infrastructure")}, "2 starts failed: no such device"},
		{[]api.Attempt{attempt("infrastructure"), attempt("infrastructure"), attempt("")}, "2 starts failed: no such device"},
		{[]api.Attempt{{Outcome: "infrastructure", Starts: 5, Message: "no such device"}}, "5 starts failed: no such device"},
		{[]api.Attempt{attempt("infrastructure"), attempt("gpu-oom"), attempt("infrastructure")}, ""},
		{[]api.Attempt{attempt("program")}, ""},
	} {
		if got := stuck(&api.Task{Attempts: c.attempts}); got != c.want {
			t.Errorf("%v: %q, want %q", c.attempts, got, c.want)
		}
	}
}

// A run counts as one of MPS only if all its processes were seen as clients.
func TestVerdict(t *testing.T) {
	c := clients{seen: onCard{}}
	c.add(onCard{1 << 23: false, 1<<23 + 1: false})
	if got := c.verdict(2); got != "not MPS: none of 2 processes on the GPU was a client" {
		t.Error(got)
	}
	c.add(onCard{1 << 23: true})
	if got := c.verdict(2); got != "not MPS alone: 1 of 2 processes on the GPU were no clients" {
		t.Error(got)
	}
	c.add(onCard{1 << 23: false, 1<<23 + 1: true}) // once it was a client, it counts as one
	if got := c.verdict(2); got != "" {
		t.Error(got)
	}
	if got := c.verdict(3); got != "only 2 clients of MPS were seen, of 3 tasks" {
		t.Error(got)
	}
	c.failed = errors.New("no list")
	if got := c.verdict(2); got != "not known whether by MPS: no list" {
		t.Error(got)
	}
}

// If a run had another mode than planned, the table and the page report it.
func TestNoteOnMPS(t *testing.T) {
	r, dir := sample(), t.TempDir()
	r.Suite[1].Mode, r.Suite[1].Note = "mps", "not MPS: none of 2 processes on the GPU was a client"
	if err := errors.Join(r.writeSuite(dir), r.write(dir)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"suite.csv", "report.md"} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !strings.Contains(string(b), r.Suite[1].Note) {
			t.Errorf("%s: %v\n%s", name, err, b)
		}
	}
}

// The programs of a driver that is mounted and not installed are found.
func TestDriverPrograms(t *testing.T) {
	dir := t.TempDir()
	old := driverFolders
	driverFolders = []string{dir, "/nowhere"}
	defer func() { driverFolders = old }()
	t.Setenv("PATH", "/bin")
	findDriverPrograms()
	findDriverPrograms()
	if got := os.Getenv("PATH"); got != "/bin:"+dir {
		t.Error(got)
	}
}

// If this run has not measured step times, they come from an earlier run's table.
func TestRates(t *testing.T) {
	s, _ := sessionAt(t)
	r, dir := sample(), t.TempDir()
	if err := r.writePairs(dir); err != nil {
		t.Fatal(err)
	}
	a := r.Paired[0].Profiles[0].training
	if got := s.steps(a, 20); got != 100 {
		t.Errorf("%d steps though nothing is known", got)
	}
	s.rates = filepath.Join(dir, "profiles.csv")
	if got := s.steps(a, 20); got != 200 {
		t.Errorf("%d steps, want 200 at 10 a second", got)
	}
	var stderr bytes.Buffer
	if code := run(t.Context(), []string{"--out", dir, "--rates", filepath.Join(dir, "pairs.csv")}, &stderr); code != exitUsage || !strings.Contains(stderr.String(), "no columns workload_id and steps_per_s; give the profiles.csv of an earlier run") {
		t.Errorf("%d %s", code, stderr.String())
	}
}

// Trainings wait until there is room, and each has its own peak.
func TestRoom(t *testing.T) {
	r := newRoom(10, 2)
	r.take(6)
	taken := make(chan struct{})
	go func() { r.take(6); close(taken) }()
	select {
	case <-taken:
		t.Fatal("12 of 10")
	case <-time.After(20 * time.Millisecond):
	}
	r.give(6)
	<-taken
	m := &memoryOfGroups{peaks: map[int]int64{}}
	m.add(map[int]int64{1: 5, 2: 7})
	m.add(map[int]int64{1: 3, 2: 9})
	if a, b, c := m.most(1), m.most(2), m.most(1); a != 5 || b != 9 || c != 0 {
		t.Error(a, b, c)
	}
}

// A training's figure is the process memory that NVML listed. Otherwise the context from
// the environment's probe is added.
func TestActual(t *testing.T) {
	r, dir := sample(), t.TempDir()
	r.Date = "2026-11-22 10:00 UTC"
	r.Trained[0].Process = 1760 << 20
	r.Trained[0].Settings = map[string]string{"size": "224", "precision": "fp32"}
	if err := r.writeEstimates(dir); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "estimates.csv"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(b), "\n")
	if want := "2026-11,resnet50,imagenet,64,1,224,,fp32,,,1760.0,ok,1760.0,1000.0,,760.0,"; !strings.HasPrefix(lines[1], want) {
		t.Errorf("%s\nwant %s", lines[1], want)
	}
	if want := "2026-11,gpt2,wikitext2,4,1,,,,,,2000.0,ok,,1500.0,,500.0,"; !strings.HasPrefix(lines[2], want) {
		t.Errorf("%s\nwant %s", lines[2], want)
	}
}

// The daemon's log and a task's output are kept. The result is found in the mixed
// lines of both streams.
func TestKept(t *testing.T) {
	s, file := sessionAt(t)
	d := &daemon{session: s, name: "try", log: filepath.Join(t.TempDir(), "log")}
	if err := os.WriteFile(d.log, []byte("no such device\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	d.keepLog()
	d.keepOutput("x", strings.Repeat("a", 64<<10)+"Error: last")
	if got := file.String(); !strings.Contains(got, "no such device") || !strings.Contains(got, "Error: last") || len(got) > 20<<10 {
		t.Errorf("%d bytes", len(got))
	}
	if r := resultOf("warning\nresult {\"max_memory_reserved\": 7}\nwarning\n"); r == nil || r.Reserved != 7 {
		t.Errorf("%+v", r)
	}
}
