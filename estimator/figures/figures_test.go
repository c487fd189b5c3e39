package figures

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"strings"
	"testing"

	"carma/configs/models"
	"carma/estimator/onnx"
	"carma/estimator/step"
)

type goldenCase struct {
	Family        models.Family
	Params, Input int64
	Batch, Layers int
	Features      []float64
	Middle, Upper float64
}

// golden reads invented figures with the answers of Python and LightGBM
// (estimator/training/figures.py).
func golden(t *testing.T) (cases []goldenCase) {
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

func (c goldenCase) figures() Figures {
	return Figures{Family: c.Family, Params: c.Params, Batch: c.Batch, Input: c.Input, Layers: c.Layers}
}

func needLibrary(t *testing.T) {
	t.Helper()
	if s := onnx.Status(); !s.On {
		if os.Getenv("CI") == "true" && !strings.Contains(s.Why, "without cgo") {
			t.Fatal(s.Why)
		}
		t.Skip(s.Why)
	}
}

var env = &step.Environment{Name: "test", Context: 500 << 20, ConvContext: 100 << 20}

func TestFeatures(t *testing.T) {
	for i, c := range golden(t) {
		got := Features(c.figures())
		if len(got) != len(c.Features) {
			t.Fatalf("%d features, want %d", len(got), len(c.Features))
		}
		for k, want := range c.Features {
			if math.Abs(float64(got[k])-want) > 1e-5*max(1, math.Abs(want)) {
				t.Errorf("case %d, %s: %v, want %v", i, names[k], got[k], want)
			}
		}
	}
}

func TestTrees(t *testing.T) {
	needLibrary(t)
	m := NewModel()
	for i, c := range golden(t) {
		out, err := m.session.Run(onnx.Rows(1, Features(c.figures())))
		if err != nil {
			t.Fatal(err)
		}
		for k, want := range []float64{c.Middle, c.Upper} {
			if got := float64(out[k].Data[0]); math.Abs(got-want) > 1e-4 {
				t.Errorf("case %d, answer %d: %v, want %v", i, k, got, want)
			}
		}
	}
}

func TestEstimate(t *testing.T) {
	needLibrary(t)
	m := NewModel()
	f := Figures{Family: models.Conv, Params: 25_557_032, Batch: 64, Input: 150_528}
	ask := func(f Figures, confidence float64) Result {
		t.Helper()
		r, err := m.Estimate(f, env, confidence)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	r := ask(f, 0.95)
	if r.Context != 600<<20 || r.Point < r.Context+16*f.Params || r.Upper < r.Point || r.Weights != 16*f.Params {
		t.Errorf("got %+v", r)
	}
	if wider := ask(f, 0.99); wider.Point != r.Point || wider.Upper <= r.Upper {
		t.Errorf("at 0.99 %+v, at 0.95 %+v", wider, r)
	}
	sgd := f
	sgd.Optimizer = models.SGD
	if got := ask(sgd, 0.95); r.Point-got.Point != 8*f.Params || len(got.Warnings) != 1 {
		t.Errorf("SGD: %+v, Adam: %+v", got, r)
	}
	two := f
	two.GPUs, two.Batch = 2, 2*f.Batch
	if got := ask(two, 0.95); got.Point-r.Point != 4*f.Params {
		t.Errorf("two GPUs, twice the batch: %+v, one: %+v", got, r)
	}
	far := f
	far.Params = 1e11
	if got := ask(far, 0.95); got.Point < 16*far.Params || len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0], "parameters 1e+11, learned from") {
		t.Errorf("far outside: %+v", got)
	}
}

// TestBeyond: at four times the largest batch learned from, the memory beside the
// parameters is four times as large. A warning says that it is a guess.
func TestBeyond(t *testing.T) {
	needLibrary(t)
	k, err := readCard()
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range k.Groups {
		f := Figures{Family: g.Family, Params: 25_000_000, Batch: int(math.Round(math.Exp(float64(g.Most[2]))))}
		if g.Input || g.Layers {
			continue
		}
		at, err := NewModel().Estimate(f, env, 0.95)
		if err != nil {
			t.Fatal(err)
		}
		f.Batch *= 4
		got, err := NewModel().Estimate(f, env, 0.95)
		if err != nil {
			t.Fatal(err)
		}
		fixed := at.Context + at.Weights
		if ratio := float64(got.Point-fixed) / float64(at.Point-fixed); math.Abs(ratio-4) > 0.02 {
			t.Errorf("%s: %d, at a fourth of the batch %d: %.3f times the rest, want 4", g.Family, got.Point, at.Point, ratio)
		}
		if len(got.Warnings) == 0 || !strings.Contains(got.Warnings[0], "batch size") {
			t.Errorf("%s: warnings %q", g.Family, got.Warnings)
		}
	}
}

func TestCheck(t *testing.T) {
	good := Figures{Family: models.MLP, Params: 1000, Batch: 1}
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		change func(*Figures)
		want   string
	}{
		{func(f *Figures) { f.Family = "rnn" }, "there are [mlp cnn transformer]"},
		{func(f *Figures) { f.Params = 0 }, "0 parameters"},
		{func(f *Figures) { f.Params = math.MaxInt64 }, "parameters: it takes"},
		{func(f *Figures) { f.Batch = 0 }, "batch size 0"},
		{func(f *Figures) { f.Input = -1 }, "a sample of -1 elements"},
		{func(f *Figures) { f.Layers = 1 << 30 }, "layers: it takes"},
	} {
		f := good
		c.change(&f)
		if err := f.Check(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", f, err, c.want)
		}
		if _, err := NewModel().Estimate(f, env, 0.95); err == nil {
			t.Errorf("%+v: an estimate", f)
		}
	}
	if _, err := NewModel().Estimate(Figures{Family: models.Detection, Params: 1, Batch: 1}, env, 0.95); !errors.Is(err, ErrFamily) {
		t.Error(err)
	}
}

func TestOf(t *testing.T) {
	c := &models.Config{
		Family: models.Conv, Train: models.Train{Batch: 8}, Inputs: []models.Input{{Shape: []int64{3, 32, 32}}},
		Layers: []models.Layer{
			{Type: models.Convolution, Out: []int64{4, 32, 32}, Params: []int64{108, 4}},
			{Type: models.ReLU, Out: []int64{4, 32, 32}},
			{Type: models.Linear, Out: []int64{10}, Params: []int64{40960}},
		},
	}
	if got, want := Of(c), (Figures{Family: models.Conv, Params: 41072, Batch: 8, Input: 3072, Layers: 2}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
