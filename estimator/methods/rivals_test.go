package methods

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"carma/configs/models"
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
		s := Subject{Config: &models.Config{Train: models.Train{Batch: 4, GPUs: c.gpus, Parallel: c.parallel},
			Layers: []models.Layer{{Type: models.Linear, Out: []int64{5}, Params: []int64{400}},
				{Type: models.Linear, Out: []int64{5}, Params: []int64{500, 100}}}}}
		if got, err := (DeepSpeed{}).Estimate(s); err != nil || got.Point != c.want {
			t.Errorf("%q on %d GPUs: %d bytes (%v), want %d", c.parallel, c.gpus, got.Point, err, c.want)
		}
	}
	// T5-small, as DeepSpeed's function prints it: 60M parameters, 16M in the
	// largest layer, one GPU: 1.08 GB.
	s := Subject{Config: &models.Config{Train: models.Train{Parallel: models.ZeRO3}, Layers: []models.Layer{
		{Type: models.Embedding, Params: []int64{16449536}}, {Type: models.Linear, Params: []int64{15000000}},
		{Type: models.Linear, Params: []int64{15000000}}, {Type: models.Linear, Params: []int64{14057088}}}}}
	got, err := DeepSpeed{}.Estimate(s)
	if gb := float64(got.Point) / (1 << 30); err != nil || math.Abs(gb-1.08) > 0.005 {
		t.Errorf("T5-small: %.3f GB (%v), want 1.08", gb, err)
	}
	s.Config.Train.Optimizer = models.SGD
	if _, err := (DeepSpeed{}).Estimate(s); !errors.Is(err, ErrNotApplicable) {
		t.Errorf("SGD: %v, want not applicable", err)
	}
}

func TestFind(t *testing.T) {
	for _, m := range All() {
		if got, err := Find(All(), m.Name()); err != nil || got.Name() != m.Name() {
			t.Errorf("%s: %v, %v", m.Name(), got, err)
		}
		if m.Source() == "" {
			t.Errorf("%s has no source", m.Name())
		}
	}
	if _, err := Find(All(), "hours"); err == nil || !strings.Contains(err.Error(), "horus?") {
		t.Errorf("hours: %v, want a suggestion", err)
	}
}

func TestNoConfig(t *testing.T) {
	for _, m := range Rivals() {
		if _, err := m.Estimate(Subject{}); !errors.Is(err, ErrNotApplicable) {
			t.Errorf("%s without a configuration: %v", m.Name(), err)
		}
	}
}

// Whatever is asked, a method answers with what is at least 0 or fails.
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
		for _, m := range Rivals() {
			if a, err := m.Estimate(Subject{Config: c}); err == nil && (a.Point < 0 || a.Upper < a.Point) {
				t.Fatalf("%s: %d, at most %d, of %+v", m.Name(), a.Point, a.Upper, c)
			}
		}
	}
}

func TestMonotone(t *testing.T) {
	for _, m := range Rivals() {
		last := int64(0)
		for batch := 1; batch <= 256; batch *= 2 {
			a, err := m.Estimate(Subject{Config: small(batch)})
			if errors.Is(err, ErrNotApplicable) {
				continue
			}
			if err != nil || a.Point < last {
				t.Errorf("%s, batch size %d: %d bytes (%v), %d before", m.Name(), batch, a.Point, err, last)
			}
			last = a.Point
		}
	}
}

// small is a network of 2 convolutions, 100 elements wide.
func small(batch int) *models.Config {
	return &models.Config{Train: models.Train{Batch: batch}, Inputs: []models.Input{{Shape: []int64{10, 10}}},
		Layers: []models.Layer{
			{Type: models.Convolution, Out: []int64{4, 10, 10}, Params: []int64{36, 4}, Kernel: []int64{3, 3}},
			{Type: models.ReLU, Out: []int64{4, 10, 10}},
			{Type: models.Convolution, Out: []int64{2, 10, 10}, Params: []int64{72}, Kernel: []int64{3, 3}},
		}}
}
