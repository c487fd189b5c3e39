package step

import (
	"testing"

	"carma/configs/models"
)

// words returns a table of 64 MiB, a hidden layer, and a head that may share the table.
func words(tied bool, train models.Train) *models.Config {
	const params = 16 * mib
	table := models.Layer{Type: models.Embedding, Out: []int64{16}, Params: []int64{params}}
	head := models.Layer{Type: models.Linear, Out: []int64{16}, Params: []int64{params}, Tied: tied}
	hidden := models.Layer{Type: models.Linear, Out: []int64{16}, Params: []int64{256}}
	train.Batch = 1
	return &models.Config{Name: "words", Train: train, Inputs: []models.Input{{Shape: []int64{1}, Bytes: 8}}, Layers: []models.Layer{table, hidden, head}}
}

// The gradients of head and table and their sum exist at the same time.
func TestGradientOfATiedWeight(t *testing.T) {
	for _, c := range []struct {
		tied bool
		want int64 // tables of gradients at the peak
	}{{true, 3}, {false, 2}} {
		r := simulated(t, words(c.tied, models.Train{Optimizer: models.SGD}), plain)
		if got := r.Parts[Gradients] / (64 * mib); got != c.want {
			t.Errorf("tied %v: %d gradients of the table's size, want %d", c.tied, got, c.want)
		}
	}
}

// TestGradientOfThreeUses checks that the gradient of a second table that shares the weight is
// added to the sum in place.
func TestGradientOfThreeUses(t *testing.T) {
	c := words(true, models.Train{Optimizer: models.SGD})
	again := c.Layers[0]
	again.Tied, again.Inputs = true, []int{-1}
	both := models.Layer{Type: models.Add, Inputs: []int{1, 2}, Out: []int64{16}}
	c.Layers = []models.Layer{c.Layers[0], c.Layers[1], again, both, c.Layers[2]}
	if got := simulated(t, c, plain).Parts[Gradients] / (64 * mib); got != 3 {
		t.Errorf("%d gradients of the table's size, want 3", got)
	}
}

// At the peak of the activations, gradients of the step before are there if they are
// set to none only then.
func TestWhenGradientsAreSetToNone(t *testing.T) {
	const width = 4 * mib // numbers of a sample: 16 MiB
	layer := models.Layer{Type: models.Linear, Out: []int64{width}, Params: []int64{4 * width}}
	tanh := models.Layer{Type: models.Tanh, Out: []int64{width}}
	end := models.Layer{Type: models.Loss, Out: []int64{1}}
	peak := func(zero string) int64 {
		c := chain(models.Train{Batch: 1, Optimizer: models.SGD, ZeroGrad: zero}, layer, tanh, tanh, tanh, tanh, tanh, tanh, end)
		return simulated(t, c, plain).Allocated >> 20
	}
	if start, later := peak("start"), peak("backward"); later <= start {
		t.Errorf("before the backward pass: %d MiB, before the step: %d MiB", later, start)
	}
	if start, end := peak("start"), peak("end"); start != end || start != peak("") {
		t.Errorf("before the step: %d MiB, after it: %d MiB, by default %d MiB", start, end, peak(""))
	}
}

// TestCacheIsHeld checks that the cache of one step exists until the end of the next forward
// pass.
func TestCacheIsHeld(t *testing.T) {
	build := func(cache, checkpointing bool) int64 {
		var layers []models.Layer
		for block := 1; block <= 4; block++ {
			kv := models.Layer{Type: models.Linear, Out: []int64{mib / 4}, Params: []int64{1}, Cached: true, Block: block}
			layers = append(layers, kv, models.Layer{Type: models.Tanh, Out: []int64{mib / 4}, Block: block})
		}
		layers = append(layers, models.Layer{Type: models.Loss, Out: []int64{1}})
		return simulated(t, chain(models.Train{Batch: 16, Optimizer: models.SGD, Cache: cache, Checkpointing: checkpointing}, layers...), plain).Allocated >> 20
	}
	// Of a step's four outputs of 16 MiB, none is kept otherwise.
	if more := build(true, false) - build(false, false); more < 64 || more > 128 {
		t.Errorf("the cache takes %d MiB, want 64 of the step before and up to 64 of this one", more)
	}
	if with, without := build(true, true), build(false, true); with != without {
		t.Errorf("with checkpointing there is no cache: %d and %d MiB", with, without)
	}
}
