package residual

import (
	"errors"
	"math"
	"os"
	"testing"

	"carma/configs/models"
	"carma/estimator/environment"
	"carma/estimator/networks/zoo"
	"carma/estimator/onnx"
	"carma/estimator/step"
)

// TestFeaturesAreNumbers: each name has a finite feature, for every network.
func TestFeaturesAreNumbers(t *testing.T) {
	env, err := environment.Named("a100-2024")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range zoo.Names() {
		c, err := zoo.Build(name, models.Overrides{Batch: 2})
		if err != nil {
			t.Fatal(err)
		}
		s, err := simulate(c, &env.Environment)
		if err != nil {
			t.Fatal(name, err)
		}
		for _, tracked := range []int64{0, 1 << 30} {
			f := Features(c, s, tracked)
			if len(f) != len(Names()) {
				t.Fatalf("%s: %d features, %d names", name, len(f), len(Names()))
			}
			for i, x := range f {
				if x := float64(x); math.IsNaN(x) || math.IsInf(x, 0) {
					t.Errorf("%s: %s is %g", name, Names()[i], x)
				}
			}
			if got := f[len(f)-1] == 1; got != (tracked > 0) {
				t.Errorf("%s: tracked %v for a peak of %d", name, got, tracked)
			}
		}
	}
}

// TestSimulatedThrice: workspaces make a difference for networks with dense
// convolutions only.
func TestSimulatedThrice(t *testing.T) {
	env, err := environment.Named("a100-2025-09")
	if err != nil {
		t.Fatal(err)
	}
	for name, differ := range map[string]bool{"vgg16": true, "bert_base": false} {
		c, err := zoo.Build(name, models.Overrides{Batch: 64})
		if err != nil {
			t.Fatal(err)
		}
		s, err := simulate(c, &env.Environment)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Plain.Reserved < s.Point.Reserved && s.Point.Reserved < s.Ample.Reserved; got != differ {
			t.Errorf("%s: %d, %d, %d bytes reserved", name, s.Plain.Reserved, s.Point.Reserved, s.Ample.Reserved)
		}
	}
}

func TestModelAnswers(t *testing.T) {
	m := NewModel()
	if _, _, err := m.Correct(make([]float32, 3)); err == nil || errors.Is(err, onnx.ErrUnavailable) {
		t.Errorf("3 features: error %v", err)
	}
	got, spread, err := m.Correct(make([]float32, len(Names())))
	if errors.Is(err, onnx.ErrUnavailable) {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	if err != nil || math.Abs(got) > 1 || !(spread > 0 && spread < 1) {
		t.Errorf("%g, spread %g (%v)", got, spread, err)
	}
}

func simulate(c *models.Config, env *step.Environment) (Simulated, error) {
	p, err := step.Prepare(c)
	if err != nil {
		return Simulated{}, err
	}
	return Simulate(p, env)
}
