//go:build e2e

package test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestBadInput: every wrong input gives one line and exit code 2, and changes
// nothing.
func TestBadInput(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	file := func(name, text string) string {
		path := filepath.Join(s.root, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	gate := filepath.Join(s.root, "gate")
	if err := os.Mkdir(gate, 0o755); err != nil {
		t.Fatal(err)
	}
	trace := file("trace.yaml", "schema: carma/trace/v1\nname: broken\ntasks:\n"+
		"  - {at: 0, workload: resnet50-imagenet-bs32}\n  - {at: soon, workload: resnet50-imagenet-bs32}\n")
	csv := file("trace.csv", "arrival_s,workload\n0,resnet50-imagenet-bs32\n1,resnet51-imagenet-bs32\n")
	config := file("config.yaml", "policy: magm\npolcy: lug\n")
	cycle := file("cycle.yaml", "defaults: {image: x}\ntasks:\n  a: {after: b}\n  b: {after: a}\n")
	stranger := file("stranger.yaml", "defaults: {image: x}\ntasks:\n  train: {}\n  test: {after: trian}\n")
	bomb := file("bomb.yaml", "a: &a [x, x]\n"+strings.Repeat("b: [*a, *a, *a, *a, *a, *a, *a, *a]\n", 10<<20/35))
	elsewhere := filepath.Join(s.root, "d2")

	s.start()
	done := s.submit("--name", "done", "--mem", "1G", tool, "out:done")
	s.succeeded(done)
	runs := s.submit("--name", "runs", "--mem", "1G", "-v", gate+":/gate", tool, "gate:/gate/open")
	s.running(runs)
	waits := s.submit("--name", "waits", "--gpus", "4", "--exclusive", "--mem", "1G", tool)
	before := s.unchanging()

	nobody := filepath.Join(s.root, "nobody")
	for name, c := range map[string]struct {
		args  []string
		words []string
	}{
		"no command of that name":   {[]string{"rnu", image}, []string{`"rnu"`, "did you mean carma run"}},
		"no flag of that name":      {[]string{"run", "--men", "1G", image}, []string{"--men", "did you mean --mem"}},
		"no image":                  {[]string{"run", "-d"}, []string{"no image named"}},
		"unknown image":             {[]string{"run", "-d", "localhost:1/carma/missing:1"}, []string{"unknown image localhost:1/carma/missing:1"}},
		"image name that is none":   {[]string{"run", "-d", "Not An Image"}, []string{"Not An Image"}},
		"unknown model":             {[]string{"run", "-d", "--est-model", "resnet51", "--batch-size", "64", image}, []string{"--est-model", "resnet51", "resnet50"}},
		"more GPUs than there are":  {[]string{"run", "-d", "--gpus", "99", image}, []string{"--gpus", "99", "4"}},
		"GPUs that are no number":   {[]string{"run", "-d", "--gpus", "many", image}, []string{"--gpus", "many"}},
		"more memory than there is": {[]string{"run", "-d", "--mem", "900G", image}, []string{"--mem", "900", "39.5"}},
		"memory in no unit":         {[]string{"run", "-d", "--mem", "12Q", image}, []string{"--mem", "12Q"}},
		"variable without a name":   {[]string{"run", "-d", "-e", "=1", image}, []string{"-e", "no name"}},
		"mount without a target":    {[]string{"run", "-d", "-v", "/tmp", image}, []string{"-v /tmp", "source:target"}},
		"mount of nothing":          {[]string{"run", "-d", "-v", "/no/such/folder:/data", image}, []string{"/no/such/folder"}},
		"mount in an unknown mode":  {[]string{"run", "-d", "-v", "/tmp:/data:rwx", image}, []string{"rwx", "ro or rw"}},
		"tasks after each other":    {[]string{"run", "-d", "-f", cycle}, []string{"cycle.yaml:3: tasks.a.after", "a after b after a"}},
		"unknown task in a file":    {[]string{"run", "-d", "-f", stranger}, []string{"stranger.yaml:4: tasks.test.after", `"trian"`, "train"}},
		"task file of 10 MB":        {[]string{"run", "-d", "-f", bomb}, []string{"bomb.yaml", "larger than 1024 KiB"}},
		"array that runs backwards": {[]string{"run", "-d", "--array", "10-1", tool}, []string{"--array", "write 1-10"}},
		"sweep without values":      {[]string{"run", "-d", "--sweep", "lr", tool}, []string{"--sweep", "lr has no values"}},
		"after an unknown task":     {[]string{"run", "-d", "--array", "1-3", "--after", "99", tool}, []string{"--after", "no task and no group 99"}},
		"group that is taken":       {[]string{"run", "-d", "--array", "1-3", "--group", "runs", tool}, []string{"--group", "runs"}},
		"name that is taken":        {[]string{"run", "-d", "--name", "runs", "--mem", "1G", tool}, []string{"--name", "runs"}},
		"name that is a number":     {[]string{"run", "-d", "--name", "17", "--mem", "1G", tool}, []string{"--name 17"}},
		"time that is none":         {[]string{"run", "-d", "--time", "soon", image}, []string{"--time", "soon"}},
		"priority that is none":     {[]string{"run", "-d", "--priority", "urgent", image}, []string{"--priority", "urgent"}},
		"no task of that number":    {[]string{"why", "4711"}, []string{"4711", "carma ps -a"}},
		"removing what runs":        {[]string{"rm", runs}, []string{"is running", "stop it first"}},
		"broken trace":              {[]string{"replay", trace, "--live"}, []string{trace + ":5", "soon"}},
		"trace of unknown tasks":    {[]string{"replay", csv, "--live"}, []string{csv + ":3", "resnet51", "resnet50"}},
		"no trace of that name":     {[]string{"replay", "philly-t9-60", "--live"}, []string{"philly-t9-60", "philly-t1-60"}},
		"another policy":            {[]string{"replay", "smoke-5", "--live", "--policy", "lug"}, []string{"magm", "lug"}},
		"nobody to submit to":       {[]string{"run", "-d", "--socket", nobody, "--mem", "1G", tool}, []string{"no carma daemon", "carma daemon"}},
		"nobody to ask":             {[]string{"ps", "--socket", nobody}, []string{"no carma daemon", "carma daemon"}},
		"unknown policy":            {[]string{"daemon", "--data-dir", elsewhere, "--policy", "magn"}, []string{"magn", "magm"}},
		"unknown server":            {[]string{"daemon", "--data-dir", elsewhere, "--gpus", "sim:dgx-a100"}, []string{"dgx-a100", "dgx-station-a100"}},
		"unknown key in a file":     {[]string{"daemon", "--data-dir", elsewhere, "--config", config}, []string{config + ":2", "polcy", "policy"}},
		"data folder in use": {
			[]string{"daemon", "--data-dir", s.dir, "--socket", filepath.Join(s.root, "s2"), "--gpus", "sim:dgx-station-a100"}, []string{s.dir},
		},
		"socket in use": {
			[]string{"daemon", "--data-dir", elsewhere, "--socket", s.socket, "--gpus", "sim:dgx-station-a100"}, []string{s.socket},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s.carma(c.args...).refused(t, 2, c.words...)
			if after := s.unchanging(); after != before {
				t.Errorf("the tasks were\n%s\nand are\n%s", before, after)
			}
		})
	}

	// The earlier tasks continue.
	if err := os.WriteFile(filepath.Join(gate, "open"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	s.succeeded(runs, waits)
	s.verified()
	s.checkContainers()
}

var passing = regexp.MustCompile(`(?m)^\s*"energy_j": .*\n|^\s*"idle": \{[^}]*\},?\n`)

// unchanging returns the answer of the daemon about all tasks, without the energy that
// the running ones use and the time for which they are idle.
func (s *server) unchanging() string {
	s.t.Helper()
	return passing.ReplaceAllString(s.ok("ps", "-a", "--json"), "")
}
