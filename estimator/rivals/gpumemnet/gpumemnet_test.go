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
	Transformer   struct {
		Tokens        [][]float64
		Place, Width  []float64 // for each member of the ensemble
		Probabilities []float64
	}
}

// golden reads our own configurations with Python's answers (gpumemnet.py
// --golden).
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

func TestTokens(t *testing.T) {
	for i, c := range golden(t) {
		got := tokens(c.Config)
		if len(got) != tokenSize*len(c.Transformer.Tokens) || len(got) == 0 {
			t.Fatalf("case %d: %d numbers, want %d layers", i, len(got), len(c.Transformer.Tokens))
		}
		for k, layer := range c.Transformer.Tokens {
			for j, want := range layer {
				if x := float64(got[k*tokenSize+j]); x != want {
					t.Errorf("case %d, layer %d, number %d: %v, want %v", i, k, j, x, want)
				}
			}
		}
	}
}

func TestEstimate(t *testing.T) {
	needLibrary(t)
	for i, c := range golden(t) {
		for d, want := range map[Design][]float64{MLPs: c.Probabilities, Transformer: c.Transformer.Probabilities} {
			got, err := Estimate(c.Config, d)
			if err != nil {
				t.Fatal(err)
			}
			if got.Design != d {
				t.Errorf("case %d: design %s answered for %s", i, got.Design, d)
			}
			near(t, i, string(d), got.Probabilities, want)
		}
	}
}

// TestMembers compares the outputs of each transformer before the classes are
// cut. The probabilities of a clear answer would hide differences.
func TestMembers(t *testing.T) {
	needLibrary(t)
	all, err := networks()
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range golden(t) {
		in, err := inputs(c.Config, Transformer, summary(c.Config))
		if err != nil {
			t.Fatal(err)
		}
		out, err := all[c.Config.Family][Transformer].session.Run(in...)
		if err != nil {
			t.Fatal(err)
		}
		near(t, i, "place", out[1].Data, c.Transformer.Place)
		near(t, i, "width", out[2].Data, c.Transformer.Width)
	}
}

func near(t *testing.T, i int, what string, got []float32, want []float64) {
	t.Helper()
	if len(got) != len(want) || len(want) == 0 {
		t.Fatalf("case %d, %s: %d numbers, want %d", i, what, len(got), len(want))
	}
	for k := range want {
		if math.Abs(float64(got[k])-want[k]) > 1e-4 {
			t.Errorf("case %d, %s: %v, want %v", i, what, got, want)
			return
		}
	}
}

// TestBetter compares the default design with the folds on the cards.
func TestBetter(t *testing.T) {
	needLibrary(t)
	for _, c := range golden(t) {
		var best float64
		var want Design
		for _, d := range []Design{MLPs, Transformer} {
			name := string(c.Config.Family)
			if d == Transformer {
				name += "-transformer"
			}
			var k struct{ Accuracy float64 }
			text, err := os.ReadFile(name + "-folds.json")
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(text, &k); err != nil || k.Accuracy <= 0 {
				t.Fatalf("%s: accuracy %v, %v", name, k.Accuracy, err)
			}
			if k.Accuracy > best {
				best, want = k.Accuracy, d
			}
		}
		got, err := Estimate(c.Config, Better)
		if err != nil {
			t.Fatal(err)
		}
		if got.Design != want {
			t.Errorf("%s: design %s, the folds favour %s", c.Config.Family, got.Design, want)
		}
	}
}

func TestNoData(t *testing.T) {
	for _, d := range []Design{Better, MLPs, Transformer} {
		if _, err := Estimate(models.Config{Family: models.Transformer}, d); !errors.Is(err, ErrNoData) {
			t.Error(err)
		}
	}
}

func TestTooLong(t *testing.T) {
	c := golden(t)[0].Config
	last := c.Layers[len(c.Layers)-1]
	for len(c.Layers) <= longest+1 { // one of the layers is a view, which does not count
		c.Layers = append(c.Layers, last)
	}
	if _, err := inputs(c, Transformer, summary(c)); !errors.Is(err, ErrTooLong) {
		t.Error(err)
	}
	if _, err := inputs(c, MLPs, summary(c)); err != nil {
		t.Error(err)
	}
}

func BenchmarkEstimate(b *testing.B) {
	needLibrary(b)
	c := golden(b)[0].Config
	for _, d := range []Design{MLPs, Transformer} {
		b.Run(string(d), func(b *testing.B) {
			if _, err := Estimate(c, d); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if _, err := Estimate(c, d); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
