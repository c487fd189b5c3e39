package gpumemnet

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"strings"
	"testing"

	"carma/configs/models"
	"carma/estimator/onnx"
)

type goldenCase struct {
	Config        models.Config
	Features      []float64
	Probabilities []float64
}

// golden reads our own configurations with what Python says of them
// (gpumemnet.py --golden).
func golden(t testing.TB) (cases []goldenCase) {
	t.Helper()
	b, err := os.ReadFile("testdata/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &cases); err != nil || len(cases) == 0 {
		t.Fatalf("%d cases, %v", len(cases), err)
	}
	return cases
}

func needLibrary(t testing.TB) {
	t.Helper()
	if s := onnx.Status(); !s.On {
		if os.Getenv("CI") == "true" && !strings.Contains(s.Why, "without cgo") {
			t.Fatal(s.Why)
		}
		t.Skip(s.Why)
	}
}

func TestFeatures(t *testing.T) {
	for i, c := range golden(t) {
		got := summary(c.Config)
		if len(got) != len(c.Features) {
			t.Fatalf("%d features, want %d", len(got), len(c.Features))
		}
		for k, want := range c.Features {
			if math.Abs(float64(got[k])-want) > 1e-4*max(1e-3, math.Abs(want)) {
				t.Errorf("case %d, feature %d: %v, want %v", i, k, got[k], want)
			}
		}
	}
}

func TestEstimate(t *testing.T) {
	needLibrary(t)
	for i, c := range golden(t) {
		got, err := Estimate(c.Config)
		if err != nil {
			t.Fatal(err)
		}
		for k, want := range c.Probabilities {
			if math.Abs(float64(got.Probabilities[k])-want) > 1e-4 {
				t.Errorf("case %d: %v, want %v", i, got.Probabilities, c.Probabilities)
				break
			}
		}
	}
}

func TestNoData(t *testing.T) {
	if _, err := Estimate(models.Config{Family: models.Transformer}); !errors.Is(err, ErrNoData) {
		t.Error(err)
	}
}

func BenchmarkEstimate(b *testing.B) {
	needLibrary(b)
	c := golden(b)[0].Config
	if _, err := Estimate(c); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := Estimate(c); err != nil {
			b.Fatal(err)
		}
	}
}
