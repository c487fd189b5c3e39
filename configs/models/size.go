package models

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math"
)

// Limits of what [Config.Validate] takes. They keep every product that an
// estimator forms within int64.
const (
	MaxElements = 1 << 50 // elements of one tensor, and of all of a batch together
	MaxBatch    = 1 << 30
	MaxGPUs     = 1 << 16
	MaxLayers   = 1_000_000
	MaxDims     = 8
	MaxList     = 4096 // parameter tensors and inputs of a layer, inputs of a model
	MaxFile     = 64 << 20
)

// Times multiplies numbers from 0 on; math.MaxInt64 when that overflows.
func Times(a, b int64) int64 {
	if a < 0 || b < 0 || b > 0 && a > math.MaxInt64/b {
		return math.MaxInt64
	}
	return a * b
}

// Plus adds numbers from 0 on; math.MaxInt64 when that overflows.
func Plus(a, b int64) int64 {
	if a < 0 || b < 0 || a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// Product of dimensions, by [Times].
func Product(dims []int64) int64 {
	n := int64(1)
	for _, d := range dims {
		n = Times(n, d)
	}
	return n
}

// Sum of numbers, by [Plus].
func Sum(numbers []int64) int64 {
	var n int64
	for _, x := range numbers {
		n = Plus(n, x)
	}
	return n
}

// Elements of the input of one sample.
func (in *Input) Elements() int64 { return Product(in.Shape) }

// Elements of the layer's output: of one sample, or of the whole batch if
// Whole. Like all counts here it is math.MaxInt64 when it overflows, which
// [Config.Validate] refuses.
func (l *Layer) Elements() int64 { return Product(l.Out) }

// Parameters are the layer's, tied or not.
func (l *Layer) Parameters() int64 { return Sum(l.Params) }

// Params counts the parameters of the model, tied ones once.
func (c *Config) Params() int64 {
	return c.count(func(l *Layer) bool { return !l.Tied })
}

// TrainableParams counts the parameters that are neither tied nor frozen.
func (c *Config) TrainableParams() int64 {
	return c.count(func(l *Layer) bool { return !l.Tied && !l.Frozen })
}

func (c *Config) count(of func(*Layer) bool) int64 {
	var n int64
	for i := range c.Layers {
		if of(&c.Layers[i]) {
			n = Plus(n, c.Layers[i].Parameters())
		}
	}
	return n
}

// Activations counts the elements of all outputs of one sample, as the
// summaries of PyTorch models do: views and in-place operations included.
func (c *Config) Activations() int64 {
	var n int64
	for i := range c.Layers {
		if !c.Layers[i].Whole {
			n = Plus(n, c.Layers[i].Elements())
		}
	}
	return n
}

// Hash identifies what is trained and how: everything but the names, the
// origin and the warnings.
func (c *Config) Hash() string { return hash(c.bare()) }

// NetworkHash identifies the network whatever its training's settings are.
func (c *Config) NetworkHash() string {
	bare := c.bare()
	bare.Train = Train{}
	return hash(bare)
}

func (c *Config) bare() *Config {
	bare := *c
	bare.Name, bare.Origin, bare.Warnings = "", "", nil
	bare.Layers = make([]Layer, len(c.Layers))
	for i, l := range c.Layers {
		l.Name = ""
		bare.Layers[i] = l
	}
	return &bare
}

func hash(c *Config) string {
	h := sha256.New()
	if err := json.NewEncoder(h).Encode(c); err != nil {
		panic(err) // plain numbers and strings: our own bug
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
