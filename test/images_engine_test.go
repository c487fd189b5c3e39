//go:build images

package test

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// These tests build the images of images/torch on carma/pytorch-debian (TEST_BASE
// names another base), and run them as containers on the CPU, in tiny shapes.
// make images-test sets up what they need.

// trainingImage is the image of this run only: another run may be in progress.
var trainingImage = fmt.Sprintf("carma-test/torch-%d", os.Getpid())

func dockerCmd(args ...string) *exec.Cmd {
	return exec.Command(cmp.Or(os.Getenv("DOCKER"), "docker"), args...)
}

func buildTrainingImages(t *testing.T, tags ...string) {
	t.Helper()
	cmd := exec.Command(trainingFolder+"/build.sh", tags...)
	cmd.Env = append(os.Environ(), "BASE="+cmp.Or(os.Getenv("TEST_BASE"), "carma/pytorch-debian:latest"), "NAME="+trainingImage)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build.sh: %v\n%s", err, out)
	}
	t.Cleanup(func() {
		for _, tag := range append(tags, "latest") {
			_ = dockerCmd("image", "rm", trainingImage+":"+tag).Run()
		}
	})
}

// trained is the output of a training.
type trained struct {
	code   int
	losses map[string]string // loss by step
	result struct {
		State, Model, Dataset, Device string
		BatchSize                     int `json:"batch_size"`
		Step, Steps                   int
		Seconds                       float64
		Rate                          float64 `json:"samples_per_s"`
		Peak                          *int64  `json:"max_memory_reserved"`
	}
}

// runTraining runs a container as a user without a name and a home, as carma does. stop
// returns the signal to send after a step, or empty for none.
func runTraining(t *testing.T, stop func(step string) string, args ...string) trained {
	t.Helper()
	name := fmt.Sprintf("carma-test-%d", os.Getpid())
	all := []string{"run", "--rm", "--name", name, "--network", "none", "--user", "12345:12345", "--read-only", "--tmpfs", "/tmp", "-e", "OMP_NUM_THREADS=1"}
	cmd := dockerCmd(append(all, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	got := trained{losses: map[string]string{}}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if text, ok := strings.CutPrefix(lines.Text(), "result "); ok {
			if err := json.Unmarshal([]byte(text), &got.result); err != nil {
				t.Error(err)
			}
		}
		f := strings.Fields(lines.Text())
		if len(f) < 4 || f[0] != "step" {
			continue
		}
		got.losses[f[1]] = f[3]
		if signal := stop(f[1]); signal != "" {
			if out, err := dockerCmd("kill", "--signal", signal, name).CombinedOutput(); err != nil {
				t.Errorf("docker kill: %v %s", err, out)
			}
		}
	}
	if err := cmd.Wait(); err != nil && cmd.ProcessState.ExitCode() < 0 {
		t.Fatal(err)
	}
	got.code = cmd.ProcessState.ExitCode()
	if got.code != 0 && got.code != 75 {
		t.Errorf("%s: exit code %d\n%s", strings.Join(args, " "), got.code, stderr.Bytes())
	}
	return got
}

func never(string) string { return "" }

// Each model trains two steps in a container and prints its result.
func TestImageTrainsEachModel(t *testing.T) {
	buildTrainingImages(t)
	small := map[string][]string{
		"masked": {"--batch-size", "2", "--seq-len", "8", "--layers", "1"},
		"image":  {"--batch-size", "2", "--image-size", "96"},
		"digits": {"--batch-size", "2"},
	}
	for model, shape := range map[string][]string{
		"resnet18": small["image"], "resnet34": small["image"], "resnet50": small["image"], "vgg16": small["image"], "xception": small["image"],
		"inception_v3": small["image"], "mobilenet_v2": small["image"], "mobilenet_v3_small": small["image"], "efficientnet_b0": small["image"],
		"unet": small["image"], "maskrcnn": {"--batch-size", "2", "--image-size", "64", "--regions", "8"}, "dlrm": small["digits"],
		"mnist_cnn": small["digits"], "mlp_128x2": small["digits"], "bert_base": small["masked"], "bert_large": small["masked"],
		"xlnet_base": small["masked"], "xlnet_large": small["masked"], "gpt2_large": small["masked"], "gpt2_xl": small["masked"],
	} {
		t.Run(model, func(t *testing.T) {
			args := append([]string{trainingImage, model, "--steps", "2", "--report", "0", "--optimizer", "sgd"}, shape...)
			got := runTraining(t, never, args...)
			r := got.result
			if got.code != 0 || len(got.losses) != 2 || r.State != "finished" || r.Model != model || r.Steps != 2 || r.BatchSize != 2 {
				t.Errorf("it ended with %d after losses %v: %+v", got.code, got.losses, r)
			}
			if r.Device != "cpu" || r.Peak != nil || r.Seconds <= 0 || r.Rate <= 0 {
				t.Errorf("on the CPU there is a speed and no GPU memory: %+v", r)
			}
		})
	}
}

// A container that gets the checkpoint signal saves, exits with 75, and later continues
// from there. Together it has the same losses as a run that is never stopped.
func TestImageGoesOnFromItsCheckpoint(t *testing.T) {
	const tag = "mnist-cnn-bs64-14e"
	buildTrainingImages(t, tag)
	folder := t.TempDir()
	if err := os.Chmod(folder, 0o777); err != nil { // so that the container's user can write
		t.Fatal(err)
	}
	// The arguments replace the tag's command. The batch size is the image's.
	run := func(stop func(string) string, steps int, more ...string) trained {
		args := []string{"-v", folder + ":/checkpoint", trainingImage + ":" + tag, "mnist_cnn", "--steps", fmt.Sprint(steps), "--report", "0"}
		return runTraining(t, stop, append(args, more...)...)
	}
	losses, steps := map[string]string{}, 0
	for _, signal := range []string{"TERM", "USR1"} {
		sent := false
		got := run(func(string) string {
			if sent {
				return ""
			}
			sent = true
			return signal
		}, 1_000_000, "--checkpoint", "/checkpoint")
		if got.code != 75 || got.result.State != "saved" || got.result.Step <= steps || got.result.BatchSize != 64 {
			t.Fatalf("on %s after step %d it ended with %d, %+v", signal, steps, got.code, got.result)
		}
		steps = got.result.Step
		maps.Copy(losses, got.losses)
	}
	steps += 5
	got := run(never, steps, "--checkpoint", "/checkpoint")
	if got.code != 0 || got.result.State != "finished" || got.result.Step != steps || got.result.Steps != 5 {
		t.Errorf("at last it ended with %d, %+v", got.code, got.result)
	}
	maps.Copy(losses, got.losses)
	if want := run(never, steps); len(want.losses) != steps || !maps.Equal(losses, want.losses) {
		t.Errorf("losses with stops\n%v, without\n%v", losses, want.losses)
	}
}

// A tag has the labels that carma reads.
func TestImageTagLabels(t *testing.T) {
	all := imageWorkloads(t)
	var tags []string
	for _, w := range all {
		tags = append(tags, w.tag)
	}
	buildTrainingImages(t, tags...)
	for _, w := range all {
		out, err := dockerCmd("image", "inspect", "--format", "{{json .Config}}", trainingImage+":"+w.tag).CombinedOutput()
		if err != nil {
			t.Fatalf("docker image inspect: %v\n%s", err, out)
		}
		var c struct {
			Labels map[string]string
			Cmd    []string
			Env    []string
		}
		if err := json.Unmarshal(out, &c); err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"carma.est-model": w.model, "carma.batch-size": fmt.Sprint(w.batch), "carma.gpus": fmt.Sprint(w.gpus)}
		if !maps.Equal(c.Labels, want) || !slices.Equal(c.Cmd, w.args) || !slices.Contains(c.Env, fmt.Sprintf("CARMA_BATCH_SIZE=%d", w.batch)) {
			t.Errorf("%s has %+v, want labels %v and command %q", w.tag, c, want, w.args)
		}
	}
}

// An unknown model gives one line and exit code 2.
func TestImageRefusesAnUnknownModel(t *testing.T) {
	buildTrainingImages(t)
	out, err := dockerCmd("run", "--rm", trainingImage, "resnet51").CombinedOutput()
	if exit, ok := err.(*exec.ExitError); !ok || exit.ExitCode() != 2 || bytes.Count(out, []byte("\n")) != 1 || !bytes.Contains(out, []byte("the nearest is resnet50")) {
		t.Errorf("it said %q, %v", out, err)
	}
}
