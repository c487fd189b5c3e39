package step

import (
	"strings"
	"testing"

	"carma/configs/models"
)

// perceptron has 12 + 3 parameters and 60 bytes of weights.
func perceptron() *models.Config {
	return &models.Config{Train: models.Train{Batch: 2}, Inputs: []models.Input{{Shape: []int64{4}}},
		Layers: []models.Layer{{Type: models.Linear, Out: []int64{3}, Params: []int64{12, 3}}}}
}

// ended simulates c and returns the memory that is still allocated after its
// steps.
func ended(t *testing.T, c *models.Config) (*run, [kinds]int64) {
	t.Helper()
	p, err := Prepare(c)
	if err != nil {
		t.Fatal(err)
	}
	r := newRun(p, &Environment{})
	if err := r.steps(); err != nil {
		t.Fatal(err)
	}
	return r, r.now
}

// After the steps there are the weights, their gradients, the optimizer's states,
// the last batch (2 x 4 floats) and its results (2 x 3 and the loss).
func TestNothingLeaks(t *testing.T) {
	const batch, results = 32, 24 + 4
	for _, c := range []struct {
		name                       string
		train                      models.Train
		weights, gradients, states int64
		activations                int64
	}{
		{"adam", models.Train{Batch: 2}, 60, 60, 120, batch + results},
		{"sgd", models.Train{Batch: 2, Optimizer: models.SGD}, 60, 60, 0, batch + results},
		{"momentum", models.Train{Batch: 2, Optimizer: models.SGDMomentum}, 60, 60, 60, batch + results},
		{"8 bits", models.Train{Batch: 2, Optimizer: models.Adam8bit}, 60, 60, 120, batch + results}, // small weights have states of 32
		{"lion", models.Train{Batch: 2, Optimizer: models.Lion, Precision: models.BF16}, 30, 30, 60, 16 + 12 + 4},
		{"accumulated", models.Train{Batch: 2, Accumulate: 8}, 60, 60, 120, batch + results},
		{"factored", models.Train{Batch: 2, Optimizer: models.Adafactor}, 60, 60, 4*3 + 4*4 + 4*3, batch + results},
		{"fused", models.Train{Batch: 2, Implementation: "fused"}, 60, 60, 120, batch + results},
		{"none", models.Train{Batch: 2, Optimizer: models.NoOptimizer}, 60, 0, 0, batch + results},
		{"bf16", models.Train{Batch: 2, Precision: models.BF16}, 30, 30, 60, 16 + 12 + 4},
		{"ddp", models.Train{Batch: 4, GPUs: 2, Parallel: models.DDP}, 60, 120, 120, batch + results},
		{"zero1", models.Train{Batch: 4, GPUs: 2, Parallel: models.ZeRO1}, 60, 0, 90, batch + results},
		{"zero2", models.Train{Batch: 4, GPUs: 2, Parallel: models.ZeRO2}, 60, 0, 90, batch + results},
		{"zero3", models.Train{Batch: 4, GPUs: 2, Parallel: models.ZeRO3}, 30, 30 + 4*reduceBucket, 90, batch + results}, // its buffers stay
		{"dp", models.Train{Batch: 4, GPUs: 2, Parallel: models.DataParallel}, 60, 60, 120, batch + results + 2*24},
	} {
		cfg := perceptron()
		cfg.Train = c.train
		r, now := ended(t, cfg)
		want := [kinds]int64{Weights: c.weights, Gradients: c.gradients, States: c.states, Activations: c.activations}
		if now != want {
			t.Errorf("%s: %v bytes left, want %v", c.name, now, want)
		}
		for s, n := range r.saves {
			if n != 0 {
				t.Errorf("%s: storage %d is still kept %d times", c.name, s, n)
			}
		}
	}
}

// foreach holds a copy of all weights beside the states; for-loop holds a copy of
// the largest.
func TestOptimizerPeak(t *testing.T) {
	peak := func(implementation string) int64 {
		c := perceptron()
		c.Layers[0].Params = []int64{4000, 3000}
		c.Train.Implementation = implementation
		r, _ := ended(t, c)
		return r.most
	}
	const held = 4*4*7000 + 60 // weights, gradients, two states; batch and results
	if n := peak("foreach"); n != held+4*7000 {
		t.Errorf("foreach: peak %d bytes, want %d", n, held+4*7000)
	}
	if n := peak("for-loop"); n != held+4*4000 {
		t.Errorf("a loop: peak %d bytes, want %d", n, held+4*4000)
	}
	if n := peak("fused"); n < held || n > held+100 {
		t.Errorf("fused: peak %d bytes, want %d and the gradients of the outputs", n, held)
	}
}

func TestImpossible(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*models.Config)
		want   string
	}{
		{"no size", func(c *models.Config) { c.Layers[0].Out = []int64{0} }, "layer 1 (linear): output of shape [0]"},
		{"negative", func(c *models.Config) { c.Layers[0].Out = []int64{-3} }, "layer 1 (linear)"},
		{"huge", func(c *models.Config) { c.Layers[0].Out = []int64{1 << 40, 1 << 40} }, "out of range"},
		{"bytes", func(c *models.Config) { c.Layers[0].Out = []int64{1 << 49} }, "out of range"},
		{"forward", func(c *models.Config) { c.Layers[0].Inputs = []int{0} }, "takes the output of layer 1, which does not come before it"},
		{"no input", func(c *models.Config) { c.Layers[0].Inputs = []int{-2} }, "layer 1 (linear)"},
		{"parameters", func(c *models.Config) { c.Layers[0].Params = []int64{1 << 60} }, "layer 1 (linear)"},
		{"batch", func(c *models.Config) { c.Train.Batch = 1 << 62 }, "input of shape [4]"},
	} {
		cfg := perceptron()
		c.change(cfg)
		if _, err := Simulate(cfg, &Environment{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	if r, err := Simulate(perceptron(), &Environment{Capacity: 1 << 20}); err != nil || !r.OutOfMemory {
		t.Errorf("in 1 MiB: %+v (%v), want out of memory", r, err)
	}
}

// Runs use the memory of earlier ones. An earlier run changes no result.
func TestRunsDoNotChangeEachOther(t *testing.T) {
	big := perceptron()
	big.Train.Batch = 1000
	for range 40 {
		big.Layers = append(big.Layers, models.Layer{Type: models.Linear, Out: []int64{300}, Params: []int64{90000, 300}})
	}
	small := &Environment{Capacity: 8 << 20}
	var first []Result
	for turn := range 3 {
		for i, env := range []*Environment{{}, small, {CuBLAS: 1 << 20}} {
			for j, c := range []*models.Config{big, perceptron()} {
				got, err := Simulate(c, env)
				if err != nil {
					t.Fatal(err)
				}
				if turn == 0 {
					first = append(first, got)
				} else if want := first[2*i+j]; got != want {
					t.Errorf("turn %d, environment %d, network %d: %+v, before %+v", turn, i, j, got, want)
				}
			}
		}
	}
}
