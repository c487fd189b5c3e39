package main

import (
	"bytes"
	"encoding/csv"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"carma/configs/models"
	"carma/containers/cdi"
	"carma/estimator/evaluate"
	"carma/estimator/networks/zoo"
	"carma/mapper/sim/pairs"
)

// The plan is as large as docs/hardware says, has networks that carma knows, and
// the lengths of the suite's tasks can be taken from the pairs.
// TestLossesOf: losses are compared step by step, and a missing one is a difference.
func TestLossesOf(t *testing.T) {
	text := "loading\nstep 1  loss 2.5  10 samples/s\nstep 2  loss 2.25  10 samples/s\nstep x loss 3 4\nresult {}\n"
	got := lossesOf(text)
	if len(got) != 2 || got[1] != "2.5" || got[2] != "2.25" {
		t.Fatalf("%v", got)
	}
	for want, other := range map[string]string{
		"the same loss at all 2 steps, 2.25 at the last":                 text + "step 3  loss 2  10 samples/s\n",
		"losses differ from step 2 on: undisturbed 2.25, suspended 2.26": strings.Replace(text, "2.25", "2.26", 1),
		"losses differ from step 1 on: undisturbed 2.5, suspended none":  "",
	} {
		if said := compared(got, lossesOf(other)); said != want {
			t.Errorf("%q, want %q", said, want)
		}
	}
	if said := compared(nil, got); said != "no losses to compare" {
		t.Errorf("of none: %q", said)
	}
}

func TestPlan(t *testing.T) {
	p := realPlan
	if len(p.networks) != 20 {
		t.Errorf("%d networks, want 20", len(p.networks))
	}
	if n := len(p.pairs); n*(n-1)/2 < 30 {
		t.Errorf("%d tasks make %d pairs, want 30", n, n*(n-1)/2)
	}
	var all []training
	for _, n := range p.networks {
		if len(n.batches) != 3 {
			t.Errorf("%s: batch sizes %v, want three", n.model, n.batches)
		}
		all = append(all, n.all()...)
	}
	ids := map[string]bool{}
	for _, n := range p.others {
		for _, x := range n.all() {
			if ids[x.id()] {
				t.Errorf("%s is twice among the others", x.id())
			}
			ids[x.id()] = true
			all = append(all, x)
		}
	}
	if len(ids) < 30 {
		t.Errorf("%d other trainings, want 30", len(ids))
	}
	for _, x := range all[:60] {
		if ids[x.id()] {
			t.Errorf("%s is among the usual ones too", x.id())
		}
	}
	paired := map[string]bool{}
	for _, x := range p.pairs {
		paired[x.id()] = true
	}
	for _, x := range p.suite {
		if !paired[x.id()] {
			t.Errorf("%s is in the suite and in no pair", x.id())
		}
	}
	for _, x := range append(all, p.pairs...) {
		if _, err := zoo.Build(x.name(), models.Overrides{Batch: x.batch}); err != nil {
			t.Errorf("%s: %v", x.id(), err)
		}
	}
	for _, x := range dryPlan.suite {
		if simulated[x.model] == "" {
			t.Errorf("no simulated workload for %s", x.model)
		}
	}
}

// carma_train accepts the arguments of each training.
func TestTrainings(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3 here")
	}
	for _, p := range []plan{realPlan, dryPlan} {
		all := append(p.pairs, p.suite...)
		for _, n := range append(p.networks, p.others...) {
			all = append(all, n.all()[0])
		}
		for _, x := range all {
			cmd := exec.CommandContext(t.Context(), python, append([]string{"-c", "import sys; from carma_train import cli; cli.checked(sys.argv[1:])"}, x.args()...)...)
			cmd.Env = append(os.Environ(), "PYTHONPATH=../../../images/torch", "PYTHONDONTWRITEBYTECODE=1")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s", x.id(), err, out)
			}
		}
	}
}

// sample returns a report with invented figures.
func sample() *report {
	a, b := training{"resnet50", "imagenet", 64, plain}, training{"gpt2", "wikitext2", 4, plain}
	r := &report{
		Context: []contextStage{{"context", 2 << 20, 402 << 20, 410 << 20}, {"cudnn", 20 << 20, 520 << 20, 530 << 20}},
		Trained: []trained{
			{training: a, Status: "ok", Reserved: 1000 << 20, Estimate: 1625 << 20, Upper: 1700 << 20, EstimatedContext: 525 << 20},
			{training: b, Status: "ok", Reserved: 1500 << 20, Estimate: 1925 << 20, Upper: 1950 << 20, EstimatedContext: 525 << 20},
			{training: training{"vgg16", "imagenet", 64, plain}, Status: "oom"},
		},
		Paired: []*pairing{
			{
				Mode: timeSlicing,
				Profiles: []profile{
					{training: a, Samples: 6400, Rate: 10, Activity: activity{SMACT: 0.8, DRAMA: 0.4, readings: 3}},
					{training: b, Samples: 400, Rate: 5, Again: 0.99, Activity: activity{SMACT: 0.5, DRAMA: 0.2, readings: 3}},
				},
				Pairs: []pair{{0, 1, 6, 4}},
			},
			{
				Mode: byMPS,
				Profiles: []profile{
					{training: a, Samples: 6400, Rate: 9, Activity: activity{SMACT: 0.7, DRAMA: 0.3, readings: 3}},
					{training: b, Samples: 400, Rate: 5, Activity: activity{SMACT: 0.5, DRAMA: 0.2, readings: 3}},
				},
				Pairs: []pair{{0, 1, 8.1, 4}},
			},
		},
	}
	for _, run := range []suiteRun{{Mode: "exclusive", Makespan: 100, EnergyJ: 2000}, {Mode: "sharing", Makespan: 80, EnergyJ: 1500}} {
		stretch := run.Makespan / 100
		run.Succeeded = 2
		run.Tasks = []taskRun{
			{training: a, Phase: "succeeded", Execution: 40, Peak: 1500 << 20, Reserved: 1000 << 20},
			{training: b, Phase: "succeeded", Execution: 60 / stretch, Peak: 1900 << 20},
		}
		r.Suite = append(r.Suite, run)
	}
	r.Suite = append(r.Suite, suiteRun{Mode: "mps", Why: "no nvidia-cuda-mps-control in PATH"})
	return r
}

// carma estimate --evaluate and carma replay --pairs read the written tables,
// with the figures in their places.
func TestFormats(t *testing.T) {
	r, dir := sample(), t.TempDir()
	for _, err := range []error{r.writeEstimates(dir), r.writePairs(dir), r.writeSuite(dir)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	cases, skipped, err := evaluate.Read(opened(t, dir, "estimates.csv"), zoo.Build)
	if err != nil || len(cases) != 2 || skipped != 1 {
		t.Fatalf("%d cases, %d skipped, %v", len(cases), skipped, err)
	}
	if c := cases[0]; c.Measured != 1500<<20 || c.Batch != 64 || c.Config == nil {
		t.Errorf("%+v", c)
	}
	profiles, err := pairs.ReadProfiles("profiles.csv", opened(t, dir, "profiles.csv"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := pairs.Read("pairs.csv", opened(t, dir, "pairs.csv"), profiles)
	if err != nil || len(m.Pairs) != 1 || len(m.Skipped) != 0 {
		t.Fatalf("%+v %v", m, err)
	}
	if p := m.Pairs[0]; p.SpeedA != 0.6 || p.SpeedB != 0.8 || p.A.Load.SMACT != 0.8 || p.B.Load.DRAMA != 0.2 || p.WholeRun {
		t.Errorf("%+v", p)
	}
	runs, err := csv.NewReader(opened(t, dir, "suite.csv")).ReadAll()
	if err != nil || len(runs) != 4 {
		t.Fatalf("suite.csv: %v %v", runs, err)
	}
	for i, want := range []string{
		"exclusive,2,2,0,100.0,2000,1.000,1.000,", "sharing,2,2,0,80.0,1500,1.125,1.250,", "mps,0,0,0,,,,,no nvidia-cuda-mps-control in PATH",
	} {
		if got := strings.Join(runs[i+1], ","); got != want {
			t.Errorf("suite.csv: %s, want %s", got, want)
		}
	}
	rows, err := csv.NewReader(opened(t, dir, "tasks.csv")).ReadAll()
	if err != nil || len(rows) != 5 {
		t.Fatalf("tasks.csv: %v %v", rows, err)
	}
	if got := rows[4][7]; got != "1.250" {
		t.Errorf("slowdown of the second task shared: %s, want 1.250", got)
	}
}

// A task whose activity was not measured gets no profile, rather than one with
// activity 0.
func TestNoActivity(t *testing.T) {
	r, dir := sample(), t.TempDir()
	r.Paired[0].Profiles[0].Activity = activity{}
	if err := r.writePairs(dir); err != nil {
		t.Fatal(err)
	}
	profiles, err := pairs.ReadProfiles("profiles.csv", opened(t, dir, "profiles.csv"))
	if err != nil || profiles["resnet50_imagenet_bs64"].Measured || !profiles["gpt2_wikitext2_bs4"].Measured {
		t.Errorf("%+v %v", profiles, err)
	}
}

func opened(t *testing.T, dir, name string) *os.File {
	t.Helper()
	file, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	return file
}

// The estimator's errors, computed by hand: 500 MiB beyond the allocator;
// estimates of 1600 for 1500 and 1900 for 2000. The second bound, 1925, did not
// hold.
func TestErrors(t *testing.T) {
	e := sample().Errors()
	near := func(x, want float64) bool { return x > want-1e-9 && x < want+1e-9 }
	if e.Rows != 2 || e.OOMs != 1 || e.Held != 1 || !near(e.Mean, (100./1500+100./2000)/2) || !near(e.Worst, 100./1500) || !near(e.Bias, (100./1500-100./2000)/2) {
		t.Errorf("%+v", e)
	}
}

func TestReport(t *testing.T) {
	r, dir := sample(), t.TempDir()
	r.Dry = true
	r.omit("pairs", "two\nlines")
	if err := r.write(dir); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "report.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Nothing on this page is a measurement", "| sharing | 80.0 | 0.800 | 1500 | 0.750 | 0 | 2 of 2 | 1.12 | 1.25 |",
		"| mps | not measured here: no nvidia-cuda-mps-control in PATH |", "Not measured here: two lines.", "held for 1 of 2",
		"| exclusive | resnet50_imagenet_bs64 | succeeded |  | 1500.0 | 1000.0 | 500.0 |",
		"| resnet50_imagenet_bs64 | gpt2_wikitext2_bs4 | 0.600 | 0.800 |",
	} {
		if !strings.Contains(string(b), want) {
			t.Errorf("no %q in\n%s", want, b)
		}
	}
}

// The driver accepts the CDI file that is written for a card.
func TestCDISpec(t *testing.T) {
	b, err := cdiSpec("GPU-1", 3)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "x.json"), b, 0o644); err != nil {
		t.Fatal(err)
	}
	files, err := cdi.Read([]string{dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := files.Missing([]string{"GPU-1"}); err != nil {
		t.Error(err)
	}
	if nodes := files.Nodes([]string{"GPU-1"}); len(nodes) == 0 || nodes[0] != "/dev/nvidia3" {
		t.Errorf("nodes %v", nodes)
	}
}

func TestUsage(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"", "hardware: where to? add --out FOLDER\n"},
		{"--out x --minutes 0.5", "hardware: --minutes 0.5: not from 1 to 600; the nearest is 1\n"},
		{"--out x --minutes NaN", "hardware: --minutes NaN: not from 1 to 600; the nearest is 9\n"},
		{"--out x --phases suit", "hardware: --phases \"suit\": none of environment, estimator, pairs, suite, faults, suspend, suspend-tasks\n"},
		{"--out x --engine podman", "hardware: --engine \"podman\": none of auto, containerd, docker\n"},
		{"--out x now", "hardware: \"now\": no such argument; --help lists them\n"},
		{"--out x --wet-run", "hardware: flag provided but not defined: -wet-run; --help lists them\n"},
	} {
		var stderr bytes.Buffer
		if code := run(t.Context(), strings.Fields(c.args), &stderr); code != exitUsage || stderr.String() != c.want {
			t.Errorf("%s: exit code %d, %s\twant %s", c.args, code, stderr.String(), c.want)
		}
	}
}

// Without Python and an engine a dry run goes through all phases, and each reports why it
// measured nothing.
func TestNothingHere(t *testing.T) {
	dir := t.TempDir()
	var stderr bytes.Buffer
	if code := run(t.Context(), []string{"--dry-run", "--no-containers", "--python", "/nowhere/python3", "--out", dir}, &stderr); code != 0 {
		t.Fatalf("exit code %d\n%s", code, stderr.String())
	}
	b, err := os.ReadFile(filepath.Join(dir, "report.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, phase := range []string{"## CUDA context", "## Estimates", "## Pairs", "## The same tasks"} {
		_, section, _ := strings.Cut(string(b), phase)
		if section, _, _ = strings.Cut(section, "\n## "); !strings.Contains(section, "Not measured here: ") {
			t.Errorf("%s: %s", phase, section)
		}
	}
	if found, _ := filepath.Glob(filepath.Join(dir, "*.csv")); len(found) > 0 {
		t.Errorf("wrote %v", found)
	}
}

// A shell and Python can parse the scripts.
func TestScripts(t *testing.T) {
	for _, name := range []string{"run.sh", "pack.sh"} {
		if out, err := exec.CommandContext(t.Context(), "sh", "-n", name).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3 here")
	}
	for _, name := range []string{"probe.py", "worker.py"} {
		code := "import sys; compile(open(sys.argv[1]).read(), sys.argv[1], 'exec')"
		if out, err := exec.CommandContext(t.Context(), python, "-c", code, name).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}
