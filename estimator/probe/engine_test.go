//go:build probe

package probe

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"carma/configs/models"
	"carma/containers"
	"carma/containers/docker"
)

// image is built by images/pytorch-debian/build.sh.
const image = "carma/pytorch-debian:latest"

// probeImage probes a program of testdata in the image, on a real engine.
func probeImage(t *testing.T, limits Limits, program string) (*models.Config, error) {
	t.Helper()
	d, err := docker.New(docker.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	folder, err := os.MkdirTemp("", "carma-probe") // not t.TempDir, because other users must be able to enter it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	programs, err := filepath.Abs("testdata/programs")
	if err != nil {
		t.Fatal(err)
	}
	label := map[string]string{"carma.probe.test": t.Name()}
	c, err := Run(t.Context(), d, Request{
		Image: image, Command: []string{"python3", "/programs/" + program}, Folder: folder, GPUs: 2, Limits: limits, Labels: label,
		User: "65534:65534", Mounts: []containers.Mount{{Source: programs, Target: "/programs"}},
	})
	if left, listErr := d.List(t.Context(), label); listErr != nil || len(left) > 0 {
		t.Errorf("containers left: %v, %v", left, listErr)
	}
	return c, err
}

func TestEngine(t *testing.T) {
	minute := Limits{Timeout: 4 * time.Minute}
	for program, kinds := range map[string][]string{
		"cnn.py":         {models.Convolution, models.BatchNorm, models.MaxPool, models.Linear, models.CrossEntropy},
		"transformer.py": {models.Embedding, models.MatMul, models.Softmax, models.LayerNorm, models.GELU},
		"shards.py":      {models.Embedding, models.Linear, models.Add},
	} {
		c, err := probeImage(t, minute, program)
		if err != nil {
			t.Errorf("%s: %v", program, err)
			continue
		}
		for _, kind := range kinds {
			if !slices.ContainsFunc(c.Layers, func(l models.Layer) bool { return l.Type == kind }) {
				t.Errorf("%s: no %s", program, kind)
			}
		}
	}
}

func TestEngineReasons(t *testing.T) {
	for program, want := range map[string]string{
		"fails.py":     "the program failed: FileNotFoundError: no data set in /data",
		"nothing.py":   "the program ended without importing PyTorch",
		"evaluates.py": "the program only infers",
		"missing.py":   "the program ended without importing PyTorch",
		"greedy.py":    "the program needs more than the probe's 0.5 GiB of memory",
	} {
		c, err := probeImage(t, Limits{Timeout: 4 * time.Minute, Memory: 512 << 20}, program)
		failed, ok := errors.AsType[*FailedError](err)
		if !ok || !strings.HasPrefix(failed.Reason, want) {
			t.Errorf("%s: %+v, %v, want %q", program, c, err, want)
		}
	}
}
