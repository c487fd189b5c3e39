package main

import (
	"context"
	"testing"

	"carma/mapper/units"

	"github.com/rs/zerolog"

	"carma/estimator/booking"
	"carma/runner"
	"carma/runner/gpu"
)

// A daemon without a configured environment takes its GPUs', unless they are
// simulated.
func TestEnvironmentByGPUs(t *testing.T) {
	for _, c := range []struct {
		configured string
		context    units.Bytes
		opt        runner.Options
	}{
		{"", 760 * units.MiB, runner.Options{}},
		{"a100-2024", 1769 * units.MiB, runner.Options{}},
		{"", 525 * units.MiB, runner.Options{SetSpeed: func(float64) {}}},
	} {
		p, err := booking.NewPredictor(c.configured)
		if err != nil {
			t.Fatal(err)
		}
		if err := chooseEnvironment(t.Context(), p, c.configured, oneH100{}, &c.opt, zerolog.Nop()); err != nil {
			t.Fatal(err)
		}
		if got := c.opt.Limits.Context; got != c.context {
			t.Errorf("%q: context %s, want %s", c.configured, got, c.context)
		}
	}
}

type oneH100 struct{ gpu.Source }

func (oneH100) GPUs(context.Context) ([]gpu.Device, error) {
	return []gpu.Device{{Model: "NVIDIA H100 80GB HBM3"}}, nil
}
