package rivals

import (
	"errors"
	"testing"

	"carma/configs/models"
	"carma/estimator/methods"
)

// decoder has 5 tokens of width 4, a vocabulary of 10 and one layer.
func decoder(batch int) *models.Config {
	return &models.Config{Family: models.Transformer, Train: models.Train{Batch: batch},
		Inputs: []models.Input{{Shape: []int64{5}, Bytes: 8}},
		Layers: []models.Layer{
			{Type: models.Embedding, Out: []int64{5, 4}, Params: []int64{40}},
			{Type: models.Linear, Out: []int64{5, 12}, Params: []int64{48, 12}},
			{Type: models.Attention, Out: []int64{5, 4}, Heads: 2},
			{Type: models.Linear, Out: []int64{5, 10}, Params: []int64{40}, Tied: true},
		}}
}

func TestLLMem(t *testing.T) {
	const context = 600 << 20
	// 100 parameters in chunks of 60 take 120 elements. A sample has 20 + 60 + 20
	// outputs and 50 logits.
	for _, c := range []struct {
		train models.Train
		want  int64
	}{
		{models.Train{Batch: 1}, 4*120 + 8*100 + 4*100 + 12*50},
		{models.Train{Batch: 3}, 4*120 + 8*100 + 3*(4*100+12*50)},
		{models.Train{Batch: 1, Precision: models.BF16}, 2*120 + 12*100 + 2*100 + 10*50},
		{models.Train{Batch: 1, Optimizer: models.SGD}, 4*120 + 4*100 + 12*50},
		{models.Train{Batch: 4, GPUs: 4, Parallel: models.ZeRO2}, 4*120 + 2*100 + 4*100 + 12*50},
		{models.Train{Batch: 4, GPUs: 4, Parallel: models.ZeRO3}, 120 + 2*100 + 4*100 + 12*50},
	} {
		cfg := decoder(1)
		cfg.Train = c.train
		if got, err := (LLMem{}).Estimate(methods.Subject{Config: cfg}); err != nil || got.Point != context+c.want {
			t.Errorf("%+v: %d bytes beside the context (%v), want %d", c.train, got.Point-context, err, c.want)
		}
	}
	other := decoder(1)
	other.Layers[3].Out[1] = 11 // classes instead of a vocabulary
	pair := decoder(1)
	pair.Inputs = append(pair.Inputs, pair.Inputs[0], pair.Inputs[0])
	for _, cfg := range []*models.Config{small(1), other, pair} {
		if _, err := (LLMem{}).Estimate(methods.Subject{Config: cfg}); !errors.Is(err, methods.ErrNotApplicable) {
			t.Errorf("no language head: %v, want not applicable", err)
		}
	}
	last := int64(0)
	for batch := 1; batch < 300; batch *= 3 {
		a, err := (LLMem{}).Estimate(methods.Subject{Config: decoder(batch)})
		if err != nil || a.Point <= last {
			t.Errorf("batch size %d: %d bytes (%v), %d before", batch, a.Point, err, last)
		}
		last = a.Point
	}
	huge := decoder(1 << 62)
	if a, err := (LLMem{}).Estimate(methods.Subject{Config: huge}); err == nil {
		t.Errorf("batch size 2^62: %d bytes, want an error", a.Point)
	}
}
