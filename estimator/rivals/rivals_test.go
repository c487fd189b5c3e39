package rivals

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"carma/configs/models"
	"carma/estimator/methods"
)

func TestDeepSpeed(t *testing.T) {
	for _, c := range []struct {
		parallel models.Parallel
		gpus     int
		want     int64
	}{
		{"", 1, 16 * 1000}, {models.DDP, 4, 16 * 1000}, {models.ZeRO1, 4, 4*1000 + 3*1000},
		{models.ZeRO2, 4, 4*1000 + 4*1000}, {models.ZeRO3, 4, 4*600 + 4500},
	} {
		s := methods.Subject{Config: &models.Config{Train: models.Train{Batch: 4, GPUs: c.gpus, Parallel: c.parallel},
			Layers: []models.Layer{{Type: models.Linear, Out: []int64{5}, Params: []int64{400}},
				{Type: models.Linear, Out: []int64{5}, Params: []int64{500, 100}}}}}
		if got, err := (DeepSpeed{}).Estimate(s); err != nil || got.Point != c.want {
			t.Errorf("%q on %d GPUs: %d bytes (%v), want %d", c.parallel, c.gpus, got.Point, err, c.want)
		}
	}
	// DeepSpeed's function prints these numbers for T5-small: 60M parameters, 16M in the
	// largest layer, one GPU: 1.08 GB.
	s := methods.Subject{Config: &models.Config{Train: models.Train{Parallel: models.ZeRO3}, Layers: []models.Layer{
		{Type: models.Embedding, Params: []int64{16449536}}, {Type: models.Linear, Params: []int64{15000000}},
		{Type: models.Linear, Params: []int64{15000000}}, {Type: models.Linear, Params: []int64{14057088}}}}}
	got, err := DeepSpeed{}.Estimate(s)
	if gb := float64(got.Point) / (1 << 30); err != nil || math.Abs(gb-1.08) > 0.005 {
		t.Errorf("T5-small: %.3f GB (%v), want 1.08", gb, err)
	}
	s.Config.Train.Optimizer = models.SGD
	if _, err := (DeepSpeed{}).Estimate(s); !errors.Is(err, methods.ErrNotApplicable) {
		t.Errorf("SGD: %v, want not applicable", err)
	}
}

func TestFind(t *testing.T) {
	for _, m := range All(&methods.Carma{}) {
		if got, err := methods.Find(All(&methods.Carma{}), m.Name()); err != nil || got.Name() != m.Name() {
			t.Errorf("%s: %v, %v", m.Name(), got, err)
		}
		if m.Source() == "" {
			t.Errorf("%s has no source", m.Name())
		}
	}
	if _, err := methods.Find(All(&methods.Carma{}), "hours"); err == nil || !strings.Contains(err.Error(), "horus?") {
		t.Errorf("hours: %v, want a suggestion", err)
	}
}

func TestNoConfig(t *testing.T) {
	for _, m := range Formulas() {
		if _, err := m.Estimate(methods.Subject{}); !errors.Is(err, methods.ErrNotApplicable) {
			t.Errorf("%s without a configuration: %v", m.Name(), err)
		}
	}
}

// For any input a method fails or answers with a number of at least 0.
func TestHostile(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	sizes := []int64{-1, 0, 1, 3, 1 << 20, 1 << 31, 1 << 40, 1 << 55, math.MaxInt64, math.MinInt64}
	some := func() []int64 {
		var s []int64
		for range r.IntN(4) {
			s = append(s, sizes[r.IntN(len(sizes))])
		}
		return s
	}
	parallel := []models.Parallel{"", models.DDP, models.ZeRO1, models.ZeRO2, models.ZeRO3}
	types := append(models.Types(), "unknown")
	for range 5000 {
		c := &models.Config{Family: models.Transformer, Train: models.Train{
			Batch: int(sizes[r.IntN(len(sizes))]), GPUs: int(sizes[r.IntN(len(sizes))]), Parallel: parallel[r.IntN(len(parallel))]}}
		c.Inputs = []models.Input{{Shape: some()}}
		for range r.IntN(6) {
			c.Layers = append(c.Layers, models.Layer{Type: types[r.IntN(len(types))], Out: some(), Params: some(),
				InPlace: r.IntN(3) == 0, Heads: sizes[r.IntN(len(sizes))], Unfused: r.IntN(2) == 0, Inputs: []int{r.IntN(8) - 3}})
		}
		for _, m := range Formulas() {
			if a, err := m.Estimate(methods.Subject{Config: c}); err == nil && (a.Point < 0 || a.Upper < a.Point) {
				t.Fatalf("%s: %d, at most %d, of %+v", m.Name(), a.Point, a.Upper, c)
			}
		}
	}
}

func TestMonotone(t *testing.T) {
	for _, m := range Formulas() {
		last := int64(0)
		for batch := 1; batch <= 256; batch *= 2 {
			a, err := m.Estimate(methods.Subject{Config: small(batch)})
			if errors.Is(err, methods.ErrNotApplicable) {
				continue
			}
			if err != nil || a.Point < last {
				t.Errorf("%s, batch size %d: %d bytes (%v), %d before", m.Name(), batch, a.Point, err, last)
			}
			last = a.Point
		}
	}
}

// small returns a network of 2 convolutions, 100 elements wide.
func small(batch int) *models.Config {
	return &models.Config{Train: models.Train{Batch: batch}, Inputs: []models.Input{{Shape: []int64{10, 10}}},
		Layers: []models.Layer{
			{Type: models.Convolution, Out: []int64{4, 10, 10}, Params: []int64{36, 4}, Kernel: []int64{3, 3}},
			{Type: models.ReLU, Out: []int64{4, 10, 10}},
			{Type: models.Convolution, Out: []int64{2, 10, 10}, Params: []int64{72}, Kernel: []int64{3, 3}},
		}}
}

// Computed by hand, in bytes of one sample: weights 448, input 400, the first
// convolution and ReLU 1600 each, the second convolution 800. The peak is at the
// gradient of the second convolution. At that time there are: the weights; the
// input and ReLU's output, saved by the convolutions; the gradients of the second
// convolution's output, input and 72 weights; and two numbers, the sum and the
// loss. ReLU's own output would count again if it were not the same storage. The
// first convolution's output is gone.
func TestFakeTensor(t *testing.T) {
	want := int64(448 + 400 + 1600 + 800 + 1600 + 288 + 2*4)
	got, err := FakeTensor{}.Estimate(methods.Subject{Config: small(1)})
	if err != nil || got.Point != want {
		t.Errorf("%+v (%v), want %d", got, err, want)
	}
	got, err = FakeTensor{}.Estimate(methods.Subject{FakeTensor: 17})
	if err != nil || got.Point != 17 {
		t.Errorf("a tracker's number: %d (%v), want 17", got.Point, err)
	}
}

// For the same network DNNMem finds one segment of 2 MiB, beside a context of 850
// MiB.
func TestDNNMem(t *testing.T) {
	got, err := DNNMem{}.Estimate(methods.Subject{Config: small(1)})
	if want := int64(850<<20 + 2<<20); err != nil || got.Point != want {
		t.Errorf("%d (%v), want %d", got.Point, err, want)
	}
	parts := map[string]int64{}
	for _, p := range got.Parts {
		parts[p.Name] = p.Bytes
	}
	if parts["weights"] != 448 || parts["optimizer"] != 2*448 || parts["gradients"] != 288 || parts["workspace"] != 0 {
		t.Errorf("parts %v", parts)
	}
	// At the gradient of the second convolution: the input, three kept outputs,
	// the gradients of its output and input, and at most four numbers.
	want := int64(400 + 1600 + 1600 + 800 + 800 + 1600)
	if got := parts["activations"]; got < want || got > want+16 {
		t.Errorf("activations take %d bytes, want %d", got, want)
	}
}

// The products or sums of these sizes would overflow 2^64 to something small.
func TestHugeIsAnError(t *testing.T) {
	for _, l := range []models.Layer{
		{Type: models.Convolution, Out: []int64{1 << 32, 1 << 32}, Params: []int64{1}},
		{Type: models.Linear, Out: []int64{4}, Params: []int64{1 << 62, 1 << 62, 1 << 62, 1 << 62}},
		{Type: models.Linear, Out: []int64{4}, Params: []int64{1 << 60}},
		{Type: models.Linear, Out: []int64{4}, Params: slices.Repeat([]int64{1 << 56}, 256)},
		{Type: models.Linear, Out: []int64{-4}, Params: []int64{-8}},
	} {
		for _, m := range Formulas() {
			s := methods.Subject{Config: &models.Config{Train: models.Train{Batch: 1 << 20}, Layers: []models.Layer{l}}}
			if a, err := m.Estimate(s); err == nil && !(m.Name() == "deepspeed" && len(l.Params) == 1 && l.Params[0] == 1) {
				t.Errorf("%s of %v and %v: %d bytes, want an error", m.Name(), l.Out, l.Params, a.Point)
			}
		}
	}
}
