package limiter

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"carma/containers/containerstest"
	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/gpu"
	"carma/runner/inventory"
	"carma/runner/limits"
	"carma/runner/record"

	"github.com/rs/zerolog"
)

// source is a gpu.Source with one card of 40 GiB.
type source struct{ gpu.Source }

func (source) Name() string { return "test" }

func (source) GPUs(context.Context) ([]gpu.Device, error) {
	return []gpu.Device{{UUID: "GPU-a", Capacity: 40 * units.GiB}}, nil
}

func newLimiter(t *testing.T, opt Options) (*Limiter, error) {
	t.Helper()
	gpus, err := inventory.New(t.Context(), source{}, "", zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	return New(t.Context(), opt, Deps{
		Driver: containerstest.NewFake(), GPUs: gpus, Simulated: true, Watchdog: "relaunch",
		MPS: func(gpu.Device) (in, not string) { return "", "no MPS limit: MPS is off" }, Log: zerolog.Nop(),
	})
}

// TestTiers: the text names what limits a task and why the driver does not. A driver that must
// limit and cannot is refused.
func TestTiers(t *testing.T) {
	keeper := &limits.Keeper{Dir: t.TempDir()}
	for _, c := range []struct {
		opt  Options
		want string
	}{
		{Options{Mode: ModeOff}, "watchdog: relaunch (no driver limit: memory-limit is off; no MPS limit: MPS is off)"},
		{Options{Mode: ModeAuto, Keeper: keeper, Caps: CapsGrowth}, "frameworks grow (JAX, TensorFlow), watchdog: relaunch (no driver limit: the GPUs are simulated; no MPS limit: MPS is off)"},
	} {
		l, err := newLimiter(t, c.opt)
		if err != nil {
			t.Fatal(err)
		}
		if got := l.TierText("GPU-a"); got != c.want {
			t.Errorf("%+v: %s", c.opt, got)
		}
	}
	_, err := newLimiter(t, Options{Mode: ModeDriver, Keeper: keeper})
	if cannot := new(CannotLimitError); !errors.As(err, &cannot) || cannot.Why != "the GPUs are simulated" {
		t.Errorf("must limit: %v", err)
	}
}

// TestVariables: frameworks are limited to the largest share of a card that was granted. A task
// alone on its GPUs has no limit.
func TestVariables(t *testing.T) {
	l, err := newLimiter(t, Options{Caps: CapsFractions, Context: units.GiB})
	if err != nil {
		t.Fatal(err)
	}
	launch := model.Launch{Task: 1, Attempt: 1, Grants: []model.Grant{{GPU: "GPU-a", Memory: 5 * units.GiB}}}
	rec := &record.Record{ImageEnv: []string{"TF_FORCE_GPU_ALLOW_GROWTH=false"}}
	got := l.Attempt(rec, launch, func() []model.Grant { return launch.Grants }).Variables()
	if !slices.Contains(got, "XLA_PYTHON_CLIENT_MEM_FRACTION=0.100") || strings.Contains(strings.Join(got, " "), "TF_FORCE") {
		t.Errorf("%q", got)
	}
	alone := &record.Record{Task: model.Task{NextExclusive: true}}
	a := l.Attempt(alone, launch, func() []model.Grant { return launch.Grants })
	if got := a.Variables(); got != nil || a.Limited() || a.Bursts() {
		t.Errorf("alone: %q", got)
	}
}
