package zoo

import (
	"fmt"
	"slices"

	"carma/configs/models"
)

// The model's inputs, as layers name them.
const (
	data   = -1
	second = -2
)

// graph collects the layers of one network. Its methods add operations and
// return their indices. The first thing that cannot be built is remembered in
// err; what follows is built with dimensions of 1 and thrown away.
type graph struct {
	inputs []models.Input
	layers []models.Layer
	scope  string // path of the module that is being built
	block  int    // what checkpointing recomputes as one; 0: outside
	blocks int
	rank   int64 // of the adapters; 0: none, everything is trained
	adapts int   // how many adapters were added
	err    error
}

func (g *graph) fail(format string, args ...any) {
	if g.err == nil {
		g.err = fmt.Errorf(format, args...)
	}
}

// module enters a module of the path; the function it returns leaves it.
func (g *graph) module(name string) (leave func()) {
	before := g.scope
	g.scope = g.path(name)
	return func() { g.scope = before }
}

// startBlock enters a module that is a block for checkpointing.
func (g *graph) startBlock(name string) (leave func()) {
	leaveModule := g.module(name)
	g.blocks++
	g.block = g.blocks
	return func() {
		g.block = 0
		leaveModule()
	}
}

func (g *graph) path(name string) string {
	if g.scope == "" || name == "" {
		return g.scope + name
	}
	return g.scope + "." + name
}

// input declares a tensor of the batch. Token ids and labels have 8 bytes.
func (g *graph) input(bytes int, shape ...int64) {
	g.inputs = append(g.inputs, models.Input{Shape: shape, Bytes: bytes})
}

func (g *graph) shape(i int) []int64 {
	if i < 0 {
		return g.inputs[-1-i].Shape
	}
	return g.layers[i].Out
}

func (g *graph) last(i int) int64 {
	s := g.shape(i)
	return s[len(s)-1]
}

func (g *graph) whole(i int) bool { return i >= 0 && g.layers[i].Whole }

// add appends a layer whose name is relative to the module being built. With
// adapters the network's own parameters are frozen.
func (g *graph) add(l models.Layer) int {
	l.Name = g.path(l.Name)
	l.Block = g.block
	l.Frozen = l.Frozen || g.rank > 0 && len(l.Params) > 0
	for i, d := range l.Out {
		if d < 1 {
			g.fail("%s would have the shape %v", l.Name, l.Out)
			l.Out = slices.Clone(l.Out)
			l.Out[i] = 1
		}
	}
	g.layers = append(g.layers, l)
	return len(g.layers) - 1
}

// op adds an operation without parameters.
func (g *graph) op(kind, name string, out []int64, inputs ...int) int {
	whole := true
	for _, in := range inputs {
		whole = whole && g.whole(in)
	}
	return g.add(models.Layer{Name: name, Type: kind, Inputs: inputs, Out: slices.Clone(out), Whole: whole})
}

// unary adds an operation whose output is like its input.
func (g *graph) unary(kind, name string, in int) int {
	return g.op(kind, name, g.shape(in), in)
}

// inPlace adds an operation that overwrites its input.
func (g *graph) inPlace(kind, name string, in int) int {
	i := g.unary(kind, name, in)
	g.layers[i].InPlace = true
	return i
}

// keeping replaces what layer i keeps for the backward pass.
func (g *graph) keeping(i int, k models.Keeps) int {
	g.layers[i].Keeps = &k
	return i
}

// scale multiplies by a constant, for which nothing is kept.
func (g *graph) scale(name string, in int) int {
	return g.keeping(g.unary(models.Mul, name, in), models.Keeps{})
}

func (g *graph) plus(name string, a, b int) int {
	return g.op(models.Add, name, g.shape(a), a, b)
}

// plusInPlace is a += b.
func (g *graph) plusInPlace(name string, a, b int) int {
	i := g.plus(name, a, b)
	g.layers[i].InPlace = true
	return i
}

func (g *graph) times(name string, a, b int) int {
	return g.op(models.Mul, name, g.shape(a), a, b)
}

func (g *graph) view(name string, in int, shape ...int64) int {
	return g.op(models.View, name, shape, in)
}

func (g *graph) copyOf(name string, in int, shape ...int64) int {
	return g.op(models.Copy, name, shape, in)
}

// flatten makes a vector of each sample.
func (g *graph) flatten(in int) int {
	n := int64(1)
	for _, d := range g.shape(in) {
		n *= d
	}
	return g.view("flatten", in, n)
}

// concat joins along the first dimension: the channels of images.
func (g *graph) concat(name string, inputs ...int) int {
	out := slices.Clone(g.shape(inputs[0]))
	for _, in := range inputs[1:] {
		out[0] += g.shape(in)[0]
	}
	return g.op(models.Concat, name, out, inputs...)
}

// drop adds a dropout, which keeps its mask.
func (g *graph) drop(name string, in int) int { return g.unary(models.Dropout, name, in) }

// dropInPlace adds a dropout in place: PyTorch then keeps its factors as
// 32-bit numbers and not as a mask of one byte.
func (g *graph) dropInPlace(name string, in int) int {
	n := int64(1)
	for _, d := range g.shape(in) {
		n *= d
	}
	return g.keeping(g.inPlace(models.Dropout, name, in), models.Keeps{Bytes: 4 * n})
}

// skip adds stochastic depth: a branch is multiplied by one number per sample.
func (g *graph) skip(name string, in int) int {
	return g.keeping(g.unary(models.Mul, name, in), models.Keeps{Bytes: 4})
}

// crossEntropy ends a network: labels is one of the model's inputs or made of it.
func (g *graph) crossEntropy(name string, logits, labels int) int {
	return g.add(models.Layer{
		Name: name, Type: models.CrossEntropy, Inputs: []int{logits, labels}, Out: []int64{1}, Whole: true,
	})
}

// loss ends a network with another loss.
func (g *graph) loss(name string, inputs ...int) int {
	return g.add(models.Layer{Name: name, Type: models.Loss, Inputs: inputs, Out: []int64{1}, Whole: true})
}
