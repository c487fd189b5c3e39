package models

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math"
)

// Limits of [Config.Validate]. With them every product in an estimator stays
// within int64.
const (
	MaxElements = 1 << 50 // elements of one tensor, and of all tensors of a batch together
	MaxBatch    = 1 << 30
	MaxGPUs     = 1 << 16
	MaxLayers   = 1_000_000
	MaxDims     = 8
	MaxList     = 4096 // parameter tensors and inputs of a layer, inputs of a model
	MaxFile     = 64 << 20
)

// Times multiplies numbers that are at least 0. On overflow it returns
// math.MaxInt64.
func Times(a, b int64) int64 {
	if a < 0 || b < 0 || b > 0 && a > math.MaxInt64/b {
		return math.MaxInt64
	}
	return a * b
}

// Plus adds numbers that are at least 0. On overflow it returns math.MaxInt64.
func Plus(a, b int64) int64 {
	if a < 0 || b < 0 || a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// Product multiplies dimensions with [Times].
func Product(dims []int64) int64 {
	n := int64(1)
	for _, d := range dims {
		n = Times(n, d)
	}
	return n
}

// Sum adds numbers with [Plus].
func Sum(numbers []int64) int64 {
	var n int64
	for _, x := range numbers {
		n = Plus(n, x)
	}
	return n
}

// Elements returns the number of elements of one sample.
func (in *Input) Elements() int64 { return Product(in.Shape) }

// Elements returns the number of elements of the layer's output, for one sample, or for
// the whole batch if Whole is set. Like all counts here, it returns math.MaxInt64 on
// overflow, which [Config.Validate] refuses.
func (l *Layer) Elements() int64 { return Product(l.Out) }

// Parameters returns the number of the layer's parameters, tied or not.
func (l *Layer) Parameters() int64 { return Sum(l.Params) }

// Params returns the number of the model's parameters; tied parameters count once.
func (c *Config) Params() int64 {
	return c.count(func(l *Layer) bool { return !l.Tied })
}

// TrainableParams returns the number of parameters that are neither tied nor frozen.
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

// Activations returns the number of elements of all outputs for one sample. Like the
// summaries of PyTorch models, it includes views and in-place operations.
func (c *Config) Activations() int64 {
	var n int64
	for i := range c.Layers {
		if !c.Layers[i].Whole {
			n = Plus(n, c.Layers[i].Elements())
		}
	}
	return n
}

// Hash identifies the network and its training. It ignores the names, the origin
// and the warnings.
func (c *Config) Hash() string { return hash(c.bare()) }

// NetworkHash identifies the network. Unlike Hash it also ignores the settings of the
// training.
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
		panic(err) // only numbers and strings, so this is a bug of carma
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
