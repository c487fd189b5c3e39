package zoo

import (
	"fmt"
	"slices"

	"carma/configs/models"
)

// Names by which layers refer to the model's inputs.
const (
	data   = -1
	second = -2
)

// graph collects the layers of one network. Its methods add operations and return
// their indices. err is the first thing that could not be built. Later layers get
// dimensions of 1, and the result is dropped.
type graph struct {
	room
	inputs  []models.Input
	layers  []models.Layer
	scope   string // path of the module being built
	block   int    // number of the checkpointed block; 0: outside of all
	blocks  int
	targets []string        // names of the layers that get adapters; none: those of a builder
	linears map[string]bool // names of all linear layers, noted where targets are
	rank    int64           // rank of the adapters; 0: none, everything is trained
	dora    bool            // adapters have a magnitude
	adapts  int             // adapters added so far
	fixed   bool            // batch norms are fixed
	frozen  *int            // what is added is frozen and runs without autocast, with so many bits; nil: not
	err     error
}

func (g *graph) fail(format string, args ...any) {
	if g.err == nil {
		g.err = fmt.Errorf(format, args...)
	}
}

// module enters a module below the current one; leave returns to that.
func (g *graph) module(name string) (leave func()) {
	before := g.scope
	g.scope = g.path(name)
	return func() { g.scope = before }
}

// startBlock enters a module that checkpointing recomputes as one. What runs without a
// gradient is not recomputed.
func (g *graph) startBlock(name string) (leave func()) {
	leaveModule := g.module(name)
	if g.frozen != nil {
		return leaveModule
	}
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
	return g.name(g.scope, name)
}

// input declares a tensor of the batch; bytes is the size of an element. Token
// ids and labels have 8.
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

// add appends a layer; its name is relative to the current module. With adapters
// the network's own parameters are frozen.
func (g *graph) add(l models.Layer) int {
	l.Name = g.path(l.Name)
	l.Block = g.block
	l.Frozen = l.Frozen || g.rank > 0 && len(l.Params) > 0
	if g.frozen != nil {
		l.Frozen, l.NoAutocast, l.Bits = len(l.Params) > 0, true, *g.frozen
	}
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

// expect makes room for so many more layers.
func (g *graph) expect(more int) {
	if cap(g.layers)-len(g.layers) < more {
		g.layers = slices.Grow(g.layers, more)
	}
}

// op adds an operation without parameters.
func (g *graph) op(kind, name string, out []int64, inputs ...int) int {
	whole := true
	for _, in := range inputs {
		whole = whole && g.whole(in)
	}
	return g.add(models.Layer{Name: name, Type: kind, Inputs: g.places(inputs), Out: g.sizes(out), Whole: whole})
}

// unary adds an operation whose output has the shape of its input.
func (g *graph) unary(kind, name string, in int) int {
	return g.op(kind, name, g.shape(in), in)
}

// inPlace adds a unary operation that overwrites its input.
func (g *graph) inPlace(kind, name string, in int) int {
	i := g.unary(kind, name, in)
	g.layers[i].InPlace = true
	return i
}

// keeping sets what layer i keeps for the backward pass.
func (g *graph) keeping(i int, k models.Keeps) int {
	g.layers[i].Keeps = &k
	return i
}

// scale multiplies by a constant, which keeps nothing.
func (g *graph) scale(name string, in int) int {
	return g.keeping(g.unary(models.Mul, name, in), models.Keeps{})
}

func (g *graph) plus(name string, a, b int) int {
	return g.op(models.Add, name, g.shape(a), a, b)
}

// plusInPlace adds a += b.
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

// spread repeats what is there once for all samples, without a copy.
func (g *graph) spread(name string, in int) int {
	return g.perSample(g.view(name, in, g.shape(in)...))
}

// perSample says that layer i is there once for each sample, although its inputs are not.
func (g *graph) perSample(i int) int {
	g.layers[i].Whole = false
	return i
}

// flatten makes one vector of each sample.
func (g *graph) flatten(in int) int {
	n := int64(1)
	for _, d := range g.shape(in) {
		n *= d
	}
	return g.view("flatten", in, n)
}

// concat joins along the first dimension, the channels of images.
func (g *graph) concat(name string, inputs ...int) int {
	out := slices.Clone(g.shape(inputs[0]))
	for _, in := range inputs[1:] {
		out[0] += g.shape(in)[0]
	}
	return g.op(models.Concat, name, out, inputs...)
}

// drop adds a dropout, which keeps its mask.
func (g *graph) drop(name string, in int) int { return g.unary(models.Dropout, name, in) }

// dropIf adds a dropout if the network has one there.
func (g *graph) dropIf(has bool, name string, in int) int {
	if !has {
		return in
	}
	return g.drop(name, in)
}

// dropInPlace adds a dropout in place. PyTorch then keeps its factors as 32-bit
// numbers instead of a mask of one byte each.
func (g *graph) dropInPlace(name string, in int) int {
	n := int64(1)
	for _, d := range g.shape(in) {
		n *= d
	}
	return g.keeping(g.inPlace(models.Dropout, name, in), models.Keeps{Bytes: 4 * n})
}

// skip adds stochastic depth: it multiplies a branch by one number per sample.
func (g *graph) skip(name string, in int) int {
	return g.keeping(g.unary(models.Mul, name, in), models.Keeps{Bytes: 4})
}

// crossEntropy ends a network. labels is an input of the model, or made from one.
func (g *graph) crossEntropy(name string, logits, labels int) int {
	return g.add(models.Layer{
		Name: name, Type: models.CrossEntropy, Inputs: []int{logits, labels}, Out: []int64{1}, Whole: true,
	})
}

// loss ends a network with another loss.
func (g *graph) loss(name string, inputs ...int) int {
	return g.add(models.Layer{Name: name, Type: models.Loss, Inputs: inputs, Out: []int64{1}, Whole: true})
}

// narrowCrossEntropy ends a network. Without autocast it computes in the 16 bits of
// its logits: the model gives them to the loss as they are.
func (g *graph) narrowCrossEntropy(name string, logits, labels int) int {
	i := g.crossEntropy(name, logits, labels)
	g.layers[i].Bits = 16
	return i
}

// unused adds layers whose output no loss takes: their weights get no gradient, and so
// no states of the optimizer.
func (g *graph) unused(add func()) {
	from := len(g.layers)
	add()
	g.untrained(from)
}

// untrained makes the weights of the layers that were added since from not trained.
func (g *graph) untrained(from int) {
	for i := range g.layers[from:] {
		g.layers[from+i].Frozen = len(g.layers[from+i].Params) > 0
	}
}

// trained adds layers that are trained beside adapters too, as PEFT does with the
// layers of a new head.
func (g *graph) trained(add func()) {
	rank := g.rank
	g.rank = 0
	add()
	g.rank = rank
}
