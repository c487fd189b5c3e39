//go:build e2e

package test

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"carma/runner/api"
)

// shipped returns a suite that ships with carma, changed to the tests' image.
func shipped(t *testing.T, s *server, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("../configs/suites", name+".compose.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return s.write(name+".yaml", strings.ReplaceAll(string(content), "carma/simtask:latest", image))
}

func (s *server) write(name, content string) string {
	s.t.Helper()
	path := filepath.Join(s.root, name)
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		s.t.Fatal(err)
	}
	return path
}

// report is a JUnit file, as far as the tests read it.
type report struct {
	Tests    int `xml:"tests,attr"`
	Failures int `xml:"failures,attr"`
	Skipped  int `xml:"skipped,attr"`
	Cases    []struct {
		Name    string `xml:"name,attr"`
		Class   string `xml:"classname,attr"`
		Failure *struct {
			Message string `xml:"message,attr"`
			Text    string `xml:",chardata"`
		} `xml:"failure"`
	} `xml:"testcase"`
}

func readReport(t *testing.T, path string) (r report) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := xml.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// TestSuiteMixed: all tasks of the shipped suite finish, each after the tasks that it
// waits for. The one that requests too little memory runs out of it, or is stopped
// because it used memory that was allocated to a growing neighbour.
func TestSuiteMixed(t *testing.T) {
	t.Parallel()
	s := newUsersServer(t, "--policy", "carma", "--high-priority", "all")
	s.start()
	junit := filepath.Join(s.root, "report.xml")
	r := s.carma("suite", "up", "--json", "--junit", junit, shipped(t, s, "mixed"))
	if r.code != 0 {
		t.Fatal(r)
	}
	var result struct {
		Suite string
		OK    bool
		Tasks []api.Task
	}
	if err := json.Unmarshal([]byte(r.out), &result); err != nil {
		t.Fatal(err)
	}
	if !result.OK || result.Suite != "mixed" || len(result.Tasks) != 11 {
		t.Errorf("%s, %v, %d tasks", result.Suite, result.OK, len(result.Tasks))
	}
	if !strings.Contains(r.err, "mixed-evaluate | trained 20 epochs") {
		t.Error(r)
	}
	ooms, again := 0, 0
	of := map[string][]api.Task{}
	for _, task := range result.Tasks {
		of[task.Submit.Part] = append(of[task.Submit.Part], task)
		for _, at := range task.Attempts {
			if at.Outcome == "gpu-oom" {
				ooms++
			}
			if at.Outcome != "ok" && at.ReasonCode != "slowing" { // policy carma may move one that slows another down
				again++
			}
		}
	}
	if greedy := of["greedy"][0].Attempts; again < 1 || len(greedy) != 1+again || greedy[0].Outcome != "gpu-oom" && greedy[0].Outcome != "stopped" {
		t.Errorf("%d attempts were not the last, greedy ran as %+v", again, greedy)
	}
	order := func(first, then string, begin bool) {
		for _, a := range of[first] {
			at := a.Ended
			if begin {
				at = a.Attempts[0].Started
			}
			for _, b := range of[then] {
				if b.Attempts[0].Launched.Before(at) {
					t.Errorf("%s was launched before %s had come so far", b.Name, a.Name)
				}
			}
		}
	}
	order("prepare", "train", false)
	order("prepare", "vgg", true)
	order("large", "greedy", true)
	order("train", "evaluate", false)
	order("greedy", "evaluate", false)
	if rep := readReport(t, junit); rep.Tests != 11 || rep.Failures != 0 || rep.Skipped != 0 || len(rep.Cases) != 11 {
		t.Errorf("%+v", rep)
	}
	if v := s.verified(); v.Succeeded != 11 || v.OOMs != ooms {
		t.Errorf("the journal has %+v", v)
	}
	s.checkContainers()
}

// TestSuiteFails: if a service fails, the exit code is 1, the report has its last
// words, and services that wait for it are cancelled.
func TestSuiteFails(t *testing.T) {
	t.Parallel()
	s := newUsersServer(t)
	s.start()
	file := s.write("ci.yaml", fmt.Sprintf(`name: ci
x-carma: {mem: 1G}
services:
  good: {image: %[1]q, command: ["out:fine"], gpus: [{count: 1}]}
  bad: {image: %[1]q, command: ["out:the reason", "exit:3"], gpus: [{count: 1}], depends_on: {good: {condition: service_completed_successfully}}}
  after: {image: %[1]q, command: ["out:never"], gpus: [{count: 1}], depends_on: {bad: {condition: service_completed_successfully}}}
`, tool))
	junit := filepath.Join(s.root, "report.xml")
	r := s.carma("suite", "up", "--junit", junit, file)
	if r.code != 1 || !strings.Contains(r.out, "ci-good  | fine\n") || !strings.Contains(r.err, "carma: suite ci: 1 of 3 tasks succeeded\n") || strings.Contains(r.out, "never") {
		t.Error(r)
	}
	rep := readReport(t, junit)
	if rep.Tests != 3 || rep.Failures != 1 || rep.Skipped != 1 {
		t.Errorf("%+v", rep)
	}
	for _, c := range rep.Cases {
		if failed := c.Failure != nil; failed != (c.Class == "ci.bad") {
			t.Errorf("%+v", c)
		} else if failed && (!strings.Contains(c.Failure.Message, "exit code 3") || !strings.Contains(c.Failure.Text, "the reason\n")) {
			t.Errorf("%+v", c.Failure)
		}
	}
	if r := s.carma("suite", "wait", file); r.code != 1 {
		t.Error(r)
	}
	if r := s.carma("suite", "logs", file, "bad"); r.code != 0 || r.out != "ci-bad | the reason\n" {
		t.Error(r)
	}
}

// TestSuiteStops: the first Ctrl-C stops the tasks that up has started. down does
// the same from elsewhere; a second down does no harm.
func TestSuiteStops(t *testing.T) {
	t.Parallel()
	s := newUsersServer(t)
	s.start()
	file := s.write("long.yaml", fmt.Sprintf(`name: long
x-carma: {mem: 1G}
services:
  a: {image: %[1]q, command: ["out:ready", "block:5"], gpus: [{count: 1}], scale: 2}
  b: {image: %[1]q, command: ["out:never"], gpus: [{count: 1}], depends_on: {a: {condition: service_completed_successfully}}}
`, tool))
	c := s.begin(nil, "suite", "up", file)
	c.await(&c.out, "long-a-1 | ready")
	c.await(&c.out, "long-a-2 | ready")
	c.signal(os.Interrupt)
	if r := c.wait(); r.code != 1 || strings.Contains(r.out, "never") || !strings.Contains(r.err, "stopping group long") {
		t.Error(r)
	}
	if out := s.ok("ps", "-q"); out != "" {
		t.Errorf("still there: %s", out)
	}

	if out := s.ok("suite", "up", "-d", file); out != "long\n" {
		t.Errorf("up -d printed %q", out)
	}
	tasks, err := s.api.Group(t.Context(), "long")
	if err != nil || len(tasks) != 3 {
		t.Fatal(tasks, err)
	}
	s.running(fmt.Sprint(tasks[0].ID))
	if out := split(s.ok("suite", "down", "--timeout", "1ms", file)); !slices.Equal(out, []string{"long-a-1", "long-a-2", "long-b"}) {
		t.Errorf("down printed %q", out)
	}
	if r := s.carma("suite", "down", "-p", "long"); r.code != 0 || r.out != "" || !strings.Contains(r.err, "nothing of suite long") {
		t.Error(r)
	}
	s.engine.gone(t, s.instance())
}

// TestSuiteRefused: a wrong file gives one line and exit code 2, and nothing is
// submitted.
func TestSuiteRefused(t *testing.T) {
	t.Parallel()
	s := newUsersServer(t)
	s.start()
	tests := map[string]struct {
		content string
		words   []string
	}{
		"cycle":   {"services: {a: {image: x, depends_on: [b]}, b: {image: x, depends_on: [a]}}\n", []string{"cycle.yaml:1: services.b.depends_on: ", "a after b after a"}},
		"unknown": {"services:\n  a:\n    image: x\n    depends_on: [bb]\n", []string{`unknown.yaml:4: services.a.depends_on: unknown service "bb"; nearest: a`}},
		"broken":  {"services:\n  a: {image: x\n", []string{"not YAML"}},
		"bomb":    {"services: {a: {image: x}}\n" + strings.Repeat("# ........\n", 1<<20), []string{"larger than 1024 KiB"}},
		"env":     {"services:\n  a:\n    image: x\n    env_file: gone.env\n", []string{"env.yaml:4: services.a.env_file: "}},
	}
	for name, tc := range tests {
		s.carma("suite", "up", "-p", "wrong", s.write(name+".yaml", tc.content)).refused(t, 2, tc.words...)
	}
	if out := s.ok("ps", "-a", "-q"); out != "" {
		t.Errorf("submitted: %s", out)
	}
}
