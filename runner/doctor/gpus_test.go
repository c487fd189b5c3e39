package doctor

import (
	"strings"
	"testing"

	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/gpu"
)

// TestExporterAdvice: a dcgm-exporter is recommended only if it would provide more metrics.
func TestExporterAdvice(t *testing.T) {
	for model, helps := range map[string]bool{
		"NVIDIA GeForce RTX 3090": false, "NVIDIA GeForce RTX 4090": false, "NVIDIA GeForce GTX 1080 Ti": false,
		"NVIDIA GeForce RTX 5090": true, "NVIDIA A100-SXM4-40GB": true, "NVIDIA RTX A6000": true,
	} {
		c := checkActivity([]GPU{
			{Device: gpu.Device{Index: 0, Model: model}, Read: true, Reading: gpu.Sample{Metrics: gpu.MetricsUtilization, Coarse: true}},
			{Device: gpu.Device{Index: 1, Model: "test"}, Read: true, Reading: gpu.Sample{Metrics: gpu.MetricsGPM}},
			{Device: gpu.Device{Index: 2, Model: "test"}},
		})
		if got := strings.Contains(c.Fix, "dcgm-exporter"); got != helps || (c.Status == "warning") != helps || !strings.HasPrefix(c.Detail, "from utilization on GPU 0; from gpm on GPU 1; from nothing yet on GPU 2") {
			t.Errorf("%s: %+v", model, c)
		}
	}
}

// TestRowsOfGPUs checks that GPUs with the same text share a part of a row, and that a GPU
// without a limit is a warning.
func TestRowsOfGPUs(t *testing.T) {
	gpus := []GPU{
		{Device: gpu.Device{Index: 0}, Limits: "MPS", Suspend: "yes"},
		{Device: gpu.Device{Index: 1}, Limits: "nothing", Unlimited: true, Suspend: "no: it is old", SuspendFix: "a new one"},
		{Device: gpu.Device{Index: 2}, Limits: "MPS", Suspend: "yes"},
	}
	if c := checkLimits(gpus); c.Status != "warning" || c.Detail != "GPU 0, 2: MPS; GPU 1: nothing" || c.Fix == "" {
		t.Errorf("%+v", c)
	}
	if c := checkLimits(gpus[:1]); c.Status != "ok" || c.Fix != "" {
		t.Errorf("%+v", c)
	}
	if c := checkSuspend(gpus); c.Status != "ok" || c.Detail != "GPU 0, 2: yes; GPU 1: no: it is old" || c.Fix != "a new one" {
		t.Errorf("%+v", c)
	}
}

// TestSharing checks the warning about a GPU that only one process may use, and the warning
// that MPS does not work.
func TestSharing(t *testing.T) {
	d := New(Config{})
	gpus := []GPU{{Device: gpu.Device{Index: 0}, Shared: model.SharingMPS}, {Device: gpu.Device{Index: 1}, Shared: model.SharingTurns, NoMPS: "it is MIG"}}
	if c := d.checkSharing(t.Context(), &Facts{GPUs: gpus}); c.Status != "ok" || c.Detail != "GPU 0: by MPS, at the same time; GPU 1: by turns, which cost 10 % where tasks fill the GPU's time (no MPS: it is MIG)" {
		t.Errorf("%+v", c)
	}
	if c := d.checkSharing(t.Context(), &Facts{GPUs: gpus, NoMPS: "no program"}); c.Status != "warning" || !strings.Contains(c.Fix, "mps: off") {
		t.Errorf("%+v", c)
	}
	gpus[1].Exclusive, gpus[1].Shared = true, model.SharingAlone
	if c := d.checkSharing(t.Context(), &Facts{GPUs: gpus}); c.Status != "warning" || !strings.Contains(c.Fix, "nvidia-smi -c DEFAULT") {
		t.Errorf("%+v", c)
	}
}

// TestProblems checks which problems have a row: an engine that does not answer has its own.
func TestProblems(t *testing.T) {
	all := checkProblems([]api.Trouble{
		{Scope: "daemon", Code: "draining", Text: "it is being drained", Remedy: "wait"}, {Scope: "engine", Code: "down", Text: "it is away"}, {Scope: "gpu", Code: "x", Text: "GPU 1 starts nothing", Failures: 3},
	})
	if len(all) != 2 || all[0].Status != "warning" || all[1].Status != "failure" || !strings.Contains(all[1].Detail, "3 starts in a row") {
		t.Errorf("%+v", all)
	}
}

// TestProof checks that a container's view is compared with what it was given.
func TestProof(t *testing.T) {
	given := []string{"A=1", "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=256M"}
	if text, err := proof(given, "a limit", []string{"env A=1", "env CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=256M", "gpu GPU-a, 256"}); err != nil || !strings.HasPrefix(text, "seen by a container: a limit, CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=256M, GPU GPU-a, 256 MiB") {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := proof(given, "", []string{"env A=2"}); err == nil || !strings.Contains(err.Error(), "given A=1") {
		t.Error(err)
	}
	if text, err := proof(nil, "", []string{"smi not found"}); err != nil || !strings.Contains(text, "nothing that limits it; not proven") {
		t.Errorf("%q, %v", text, err)
	}
}
