package admission

import (
	"strings"
	"testing"

	"carma/runner/api"
)

// TestNoGPURefused: GPU options are refused for a task without a GPU, with the right
// alternative.
func TestNoGPURefused(t *testing.T) {
	for want, s := range map[string]api.Submit{
		"":                        {NoGPU: true, HostMem: 1 << 30},
		"--host-mem is":           {NoGPU: true, Mem: 1 << 30},
		"--exclusive: --gpus 0":   {NoGPU: true, Exclusive: true},
		"--probe: it finds":       {NoGPU: true, Probe: true},
		"--gpus 2: the task was ": {NoGPU: true, GPUs: 2},
	} {
		err := checkNoGPU(s)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", s, err, want)
		}
	}
}

// TestNoGPUGiven checks that 0 in a text, such as an image's label, means no GPU. Without a
// requested number, the label counts, or 1 if there is no label.
func TestNoGPUGiven(t *testing.T) {
	for _, c := range []struct {
		asked api.Submit
		label string
		gpus  int
		none  bool
	}{
		{api.Submit{}, "0", 0, true}, {api.Submit{GPUs: 2}, "0", 2, false}, {api.Submit{NoGPU: true}, "3", 0, true}, {api.Submit{}, "3", 3, false},
		{api.Submit{}, "", 1, false},
	} {
		labels := map[string]string{}
		if c.label != "" {
			labels["carma.gpus"] = c.label
		}
		if s, warn := fromLabels(c.asked, labels); s.GPUs != c.gpus || s.NoGPU != c.none || len(warn) > 0 {
			t.Errorf("%+v with the label %q: %d GPUs, none %v, %q", c.asked, c.label, s.GPUs, s.NoGPU, warn)
		}
	}
}
