package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"carma/mapper/units"

	"github.com/rs/zerolog"

	"carma/configs"
	"carma/configs/servers"
	"carma/containers"
	"carma/runner"
	"carma/runner/api"
	"carma/runner/gpu"
)

// TestGPUTable: the columns that only real GPUs have, and the mark of a figure
// that is a bound.
func TestGPUTable(t *testing.T) {
	a := api.GPU{GPURef: api.GPURef{Index: 0}, Model: "NVIDIA A100", Capacity: int64(40 * units.GiB), SMACT: 0.9, PowerW: 250, TemperatureC: 61, Coarse: true}
	b := api.GPU{GPURef: api.GPURef{Index: 1}, Model: "NVIDIA A100", Capacity: int64(40 * units.GiB), SMACT: 0.5, PowerW: 100}
	var out bytes.Buffer
	if err := gpuTable([]api.GPU{a, b}, 0, false).write(&out, 0); err != nil {
		t.Fatal(err)
	}
	want := `GPU  MODEL  RESERVED  USED  TOTAL  SMACT  POWER  TEMP  TASKS
  0  A100        0.0   0.0   40.0  ~0.90   250W   61C  -
  1  A100        0.0   0.0   40.0   0.50   100W     -  -
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

// TestForReal: what only simulated GPUs can do.
func TestForReal(t *testing.T) {
	for _, tt := range []struct {
		attach string
		speed  float64
		err    string
	}{
		{"auto", 1, ""},
		{"device-request", 1, ""},
		{"cdi", 1, ""},
		{"simulated", 1, "--attach simulated gives a task no GPU"},
		{"auto", 60, "--speed 60 needs simulated GPUs"},
	} {
		err := forReal(configs.Config{GPUs: "nvml", Attach: tt.attach, Speed: tt.speed})
		if (err == nil) != (tt.err == "") || err != nil && (!strings.Contains(err.Error(), tt.err) || codeOf(err) != exitUsage) {
			t.Errorf("%s at speed %v: %v", tt.attach, tt.speed, err)
		}
	}
}

// TestNoGPUs: without a driver nvml is refused in one line, and auto simulates.
func TestNoGPUs(t *testing.T) {
	if hasNVIDIA() {
		t.Skip("there is an NVIDIA driver")
	}
	open := func(source string) (gpu.Source, *runner.Options, error) {
		config := configs.Default()
		config.GPUs, config.DataDir, config.Speed = source, t.TempDir(), 60
		config.DCGMExporter = "http://127.0.0.1:1/metrics"
		opt := &runner.Options{}
		s, err := openGPUs(t.Context(), config, runner.NewClock(1), opt, zerolog.Nop())
		return s, opt, err
	}
	for _, source := range []string{"nvml", "nvml:0,1"} {
		_, _, err := open(source)
		var none *noDriverError
		if !errors.As(err, &none) || codeOf(err) != exitUsage || none.hint == "" || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", source, err)
		}
	}
	s, opt, err := open("auto")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if s.Name() != "sim:"+servers.Default || opt.Attach != containers.AttachSimulated {
		t.Errorf("auto opens %s, attached by %s", s.Name(), opt.Attach)
	}
}
