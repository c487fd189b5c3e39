package main

import (
	"math"
	"strings"
	"syscall"
	"testing"
	"time"

	"carma/runner/progress"
)

// TestForms: output in each form is recognised as that form, to the end.
func TestForms(t *testing.T) {
	if testing.Short() {
		t.Skip("takes about a second or more")
	}
	const steps, epochs = 1563, 20
	for form, want := range map[string]struct {
		source progress.Form
		total  float64 // 0 if the form does not show it
	}{
		"plain": {progress.Words, steps * epochs}, "tqdm": {progress.Tqdm, steps * epochs}, "hf": {progress.Trainer, steps * epochs},
		"keras": {progress.Keras, steps * epochs}, "lightning": {progress.Lightning, 0},
	} {
		r := printed(t, form)
		var read progress.Reader
		at, before, got := time.Unix(1e9, 0), progress.Progress{}, progress.Progress{}
		for _, piece := range strings.SplitAfter(strings.ReplaceAll(r.out.String(), "\r", "\n\r"), "\n") {
			at = at.Add(time.Second)
			read.Feed(at, progress.Stdout, []byte(piece))
			if p, ok := read.Progress(at); ok {
				if p.Restarts == before.Restarts && p.Done < before.Done {
					t.Errorf("%s: %g after %g", form, p.Done, before.Done)
				}
				got, before = p, p
			}
		}
		if got.Source != want.source || got.Done != steps*epochs || got.Total != want.total || got.Unit != progress.Steps {
			t.Errorf("%s: %+v\n%q", form, got, r.out.String())
		}
		out := strings.TrimSuffix(r.out.String(), "\n")
		if !trained(out[strings.LastIndexByte(out, '\n')+1:]) {
			t.Errorf("%s ends with %q", form, out[max(0, len(out)-200):])
		}
	}
}

// printed runs a task that prints in a form. On a busy machine, a short run prints too few
// lines to show the epochs; then printed repeats it with a longer run.
func printed(t *testing.T, form string) *running {
	t.Helper()
	for speed := 600.0; ; speed /= 4 {
		r := newBench(t, speed).start("1", "resnet18_cifar100_20e_1", "--print", form)
		if code := <-r.code; code != exitOK {
			t.Fatalf("%s: exit %d: %s", form, code, r.err.String())
		}
		if strings.Count(r.out.String(), "\n")+strings.Count(r.out.String(), "\r") >= 8 || speed < 10 {
			return r
		}
	}
}

// TestBarSpeed: the bar shows the simulated server's speed, in simulated time: a task that runs
// alone finishes all steps within its run time.
func TestBarSpeed(t *testing.T) {
	if testing.Short() {
		t.Skip("takes about a second or more")
	}
	b := newBench(t, 600)
	r := b.start("1", "resnet18_cifar100_20e_1", "--print", "hf", "--time", "1000s", "--steps-per-epoch", "250")
	if code := <-r.code; code != exitOK {
		t.Fatal(r.err.String())
	}
	if out := r.out.String(); !strings.Contains(out, " 5000/5000 [16:") || !strings.Contains(out, "<00:00, 5.00it/s]\n") {
		t.Errorf("%q", out)
	}
}

// TestPrintNone checks that no progress is printed.
func TestPrintNone(t *testing.T) {
	b := newBench(t, 2000)
	r := b.start("1", "resnet18_cifar100_20e_1", "--print", "none")
	if code := <-r.code; code != exitOK {
		t.Fatal(r.err.String())
	}
	if n := strings.Count(r.out.String(), "\n"); n != 3 {
		t.Errorf("%d lines: %s", n, r.out.String())
	}
}

// TestStoppedBar checks that the line of a progress bar ends before the last message.
func TestStoppedBar(t *testing.T) {
	b := newBench(t, 100)
	r := b.start("0", "resnet18_cifar100_20e_1", "--print", "tqdm")
	b.eventually("a bar", func() bool { return strings.Contains(r.out.String(), "\rEpoch 1/20:") })
	r.stop(stopped{syscall.SIGTERM})
	<-r.code
	if out := r.out.String(); !strings.Contains(out, "]\nSIGTERM in epoch ") {
		t.Errorf("%q", out)
	}
}

// TestTurn checks that the bar of an epoch is completed before the bar of the next epoch is
// printed, and that its times count from the beginning of the epoch.
func TestTurn(t *testing.T) {
	var out buffer
	r := &trainer{job: job{steps: 100, epochs: 4, batch: 8, seconds: 400, form: "tqdm"}, out: &out}
	r.pace.Training, r.pace.Speed = 2, 2
	for _, trained := range []float64{0, 50, 130, 400} {
		r.trained, r.clock = trained, 1000+trained
		r.show()
	}
	want := []string{
		"Epoch 1/4:   0%|          | 0/100 [00:00<?, ?it/s", "Epoch 1/4:  50%|█████     | 50/100 [00:50<00:50, 1.00it/s",
		"Epoch 1/4: 100%|██████████| 100/100 [01:40<00:00, 1.00it/s", "Epoch 2/4:  30%|███       | 30/100 [00:30<01:10, 1.00it/s",
		"Epoch 2/4: 100%|██████████| 100/100 [03:20<00:00, 1.00it/s", "Epoch 4/4: 100%|██████████| 100/100 [01:40<00:00, 1.00it/s",
	}
	got := strings.Split(strings.TrimPrefix(strings.ReplaceAll(out.String(), "\n", ""), "\r"), "\r")
	if len(got) != len(want) {
		t.Fatalf("%q", got)
	}
	for i, g := range got {
		if !strings.HasPrefix(g, want[i]+", loss=") {
			t.Errorf("%q, want %q", g, want[i])
		}
	}
	for seconds, want := range map[float64]string{-1: "00:00", 59.9: "00:59", 3599: "59:59", 3600: "1:00:00", math.Inf(1): "277777:46:40"} {
		if got := clockTime(seconds); got != want {
			t.Errorf("%v: %s, want %s", seconds, got, want)
		}
	}
}
