package daemon

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"carma/estimator"
	"carma/estimator/booking"
	environments "carma/estimator/environment"
	"carma/internal/units"
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
		c.opt.DataDir = t.TempDir()
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

// The result of carma doctor --calibrate is used at once and by the next daemon on the
// same GPUs, unless another environment is configured. A broken file does no harm.
func TestOwnEnvironment(t *testing.T) {
	dir := t.TempDir()
	lines := []string{environments.Mark + `{"context": 629145600, "cudnn": 0, "cublas": 8519680, "nccl": 104857600, "spread": 0}`}
	start := func(configured string, source gpu.Source) (*booking.Predictor, runner.Options) {
		t.Helper()
		opt := runner.Options{DataDir: dir, SetSpeed: func(float64) {}}
		p, err := booking.NewPredictor(configured)
		if err == nil {
			err = chooseEnvironment(t.Context(), p, configured, source, &opt, zerolog.Nop())
		}
		if err != nil {
			t.Fatal(err)
		}
		return p, opt
	}
	two := estimator.Query{Model: "densenet121", Batch: 24, GPUs: 2}
	p, opt := start("", oneH100{})
	plain, err := p.Estimate(two)
	if err != nil {
		t.Fatal(err)
	}
	now, before, err := opt.Calibrate(lines, 80*units.GiB, time.Unix(0, 0))
	if err != nil || now.Name != "here-1970-01-01-0000" || now.Context != 600<<20 || before.Name != "a100-2025-09" {
		t.Fatalf("%+v, %+v, %v", now, before, err)
	}
	if p.Context() != 600*units.MiB {
		t.Errorf("at once: context %s", p.Context())
	}
	if _, _, err := opt.Calibrate([]string{"nothing"}, 80*units.GiB, time.Now()); err == nil {
		t.Error("without figures")
	}
	next, opt := start("", oneH100{})
	if next.Context() != 600*units.MiB || opt.Limits.Context != 600*units.MiB {
		t.Errorf("the next daemon: context %s", next.Context())
	}
	e, err := next.Estimate(two)
	if more := e.Point - plain.Point; err != nil || more < 170*units.MiB || more > 180*units.MiB {
		t.Errorf("%s more, want 75 MiB of context and 100 of NCCL; %v", more, err)
	}
	if q, _ := start("a100-2024", oneH100{}); q.Context() != 1769*units.MiB {
		t.Errorf("configured: context %s", q.Context())
	}
	if q, _ := start("", oneA100{}); q.Context() != 525*units.MiB {
		t.Errorf("on other GPUs: context %s", q.Context())
	}
	if err := os.WriteFile(filepath.Join(dir, "environment.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if q, _ := start("", oneH100{}); q.Context() != 525*units.MiB {
		t.Errorf("of a broken file: context %s", q.Context())
	}
}

type oneA100 struct{ gpu.Source }

func (oneA100) GPUs(context.Context) ([]gpu.Device, error) { return []gpu.Device{{Model: "A100"}}, nil }
