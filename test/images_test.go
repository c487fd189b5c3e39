package test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"carma/configs/models"
	"carma/configs/workloads"
	"carma/estimator/networks/zoo"
)

const trainingFolder = "../images/torch"

// python finds a Python with PyTorch, or skips the test. TEST_PYTHON names one or
// several to try.
func python(t *testing.T) string {
	t.Helper()
	for _, name := range append(strings.Fields(os.Getenv("TEST_PYTHON")), "python3", "/usr/bin/python3") {
		path, err := exec.LookPath(name)
		if err == nil && exec.CommandContext(t.Context(), path, "-c", "import torch, numpy").Run() == nil {
			return path
		}
	}
	t.Skip("no Python with PyTorch here (Debian: apt-get install python3-torch python3-numpy; TEST_PYTHON names another)")
	return ""
}

// inPython runs Python in the folder of the training programs and returns its
// output.
func inPython(t *testing.T, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), python(t), args...)
	cmd.Dir = trainingFolder
	cmd.Env = append(os.Environ(), "OMP_NUM_THREADS=1", "PYTHONDONTWRITEBYTECODE=1", "CARMA_BATCH_SIZE=")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", strings.Join(args, " "), err, out, stderr.Bytes())
	}
	return out
}

// This runs the training programs' own tests, one module at a time.
func TestTrainingPrograms(t *testing.T) {
	modules, err := filepath.Glob(filepath.Join(trainingFolder, "tests", "test_*.py"))
	if err != nil || len(modules) == 0 {
		t.Fatalf("no tests in %s/tests: %v", trainingFolder, err)
	}
	for _, m := range modules {
		name := strings.TrimSuffix(filepath.Base(m), ".py")
		t.Run(name, func(t *testing.T) { inPython(t, "-m", "unittest", "tests."+name) })
	}
}

// described is a line of python -m carma_train --describe.
type described struct {
	Model, Dataset, Optimizer, Precision, Networks string
	BatchSize                                      int `json:"batch_size"`
	Size                                           int64
	Params                                         int64
}

// The programs train the network that carma estimates under the same name: with
// the same layers, and by default the same batch size, input, optimizer and
// precision.
func TestTrainingProgramsAreInTheCatalogue(t *testing.T) {
	d := json.NewDecoder(bytes.NewReader(inPython(t, "-m", "carma_train", "--describe", "--networks", "own")))
	n := 0
	for ; d.More(); n++ {
		var got described
		if err := d.Decode(&got); err != nil {
			t.Fatal(err)
		}
		c, err := zoo.Build(got.Model, models.Overrides{})
		if err != nil {
			t.Error(err)
			continue
		}
		want := described{
			Model: c.Name, Dataset: got.Dataset, Optimizer: string(cmp.Or(c.Train.Optimizer, models.Adam)), Precision: string(cmp.Or(c.Train.Precision, models.FP32)), Networks: "own",
			BatchSize: c.Train.Batch, Params: c.Params(),
		}
		switch shape := c.Inputs[0].Shape; {
		case got.Model == "dlrm":
		case len(shape) == 3:
			want.Size = shape[1]
		default:
			want.Size = shape[0]
		}
		if got != want {
			t.Errorf("it trains %+v, carma estimates %+v", got, want)
		}
	}
	if n < 20 {
		t.Errorf("%d models described", n)
	}
}

// workload is a line of images/torch/workloads.
type workload struct {
	tag, model  string
	batch, gpus int
	args        []string
}

func imageWorkloads(t *testing.T) (all []workload) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(trainingFolder, "workloads"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) == 0 || f[0] == "#" {
			continue
		}
		batch, err := strconv.Atoi(f[2])
		gpus, err2 := strconv.Atoi(f[3])
		if err != nil || err2 != nil {
			t.Fatalf("%q: %v, %v", line, err, err2)
		}
		all = append(all, workload{f[0], f[1], batch, gpus, f[4:]})
	}
	return all
}

// A tag is named after a published workload, and has its model, batch size, GPUs,
// data set and epochs. carma estimates it by its label.
func TestImageTagsAreThePublishedWorkloads(t *testing.T) {
	tags := map[string]bool{}
	for _, w := range imageWorkloads(t) {
		tags[w.tag] = true
		p, err := workloads.Find(w.tag)
		if err != nil {
			t.Error(err)
			continue
		}
		c, err := zoo.Build(w.model, models.Overrides{Batch: w.batch})
		if err != nil {
			t.Errorf("%s: carma.est-model: %v", w.tag, err)
			continue
		}
		dataset := strings.TrimPrefix(strings.TrimSuffix(p.Dataset, "_terabyte"), "pascal_")
		if w.model != p.Model && w.model != p.Model+"/"+p.Dataset {
			t.Errorf("%s: carma run knows no carma.est-model %s; it knows %s and %s/%s", w.tag, w.model, p.Model, p.Model, p.Dataset)
		}
		args := strings.Join(w.args, " ") + " "
		name, _, _ := strings.Cut(c.Name, "/")
		start := name + " --dataset " + dataset + " --epochs " + strconv.Itoa(p.Epochs) + " "
		if p.Name != w.tag || p.BatchSize != w.batch || p.GPUs != w.gpus || !strings.HasPrefix(args, start) {
			t.Errorf("%+v is not as published: %s, batch %d, %d GPUs, %s", w, p.Name, p.BatchSize, p.GPUs, start)
		}
	}
	for _, p := range workloads.All() {
		if !tags[p.Name] && p.Model != "llama3_width_8layer" {
			t.Errorf("%s (%s) has no tag", p.Name, p.Model)
		}
	}
}

// The programs accept the arguments of the tags.
func TestImageTagsAreTrainable(t *testing.T) {
	const check = `
import sys
from carma_train.cli import checked
for line in open("workloads"):
    if not line.startswith("#"):
        tag, model, batch, gpus, *args = line.split()
        job = checked(args + ["--batch-size", batch])
        assert job.batch_size % int(gpus) == 0, tag
        print(tag)
`
	if got, want := len(strings.Fields(string(inPython(t, "-c", check)))), len(imageWorkloads(t)); got != want || want == 0 {
		t.Errorf("%d of %d tags can be trained", got, want)
	}
}
