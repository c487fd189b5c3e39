package graph

import (
	"fmt"
	"slices"

	"carma/configs/models"
)

// operations is the list of a network's layers, and adds the operations that modules are
// made of.
type operations struct {
	Inputs []models.Input
	Layers []models.Layer
	Frozen *int // bits of added layers that are frozen and run without autocast, or nil if they are not frozen

	modules
	adapters
	// err is the first error. Later layers then get dimensions of 1, and the result is
	// dropped.
	err error
}

// Fail records the reason why the network cannot be built. Only the first call counts.
func (o *operations) Fail(format string, args ...any) {
	if o.err == nil {
		o.err = fmt.Errorf(format, args...)
	}
}

// StartBlock enters a module that checkpointing recomputes as a unit. Operations without
// a gradient are not recomputed.
func (o *operations) StartBlock(name string) (leave func()) {
	leaveModule := o.Module(name)
	if o.Frozen != nil {
		return leaveModule
	}
	o.blocks++
	o.block = o.blocks
	return func() {
		o.block = 0
		leaveModule()
	}
}

// Input declares a tensor of the batch with elements of the given bytes. Elements of token
// ids and labels have 8 bytes.
func (o *operations) Input(bytes int, shape ...int64) {
	o.Inputs = append(o.Inputs, models.Input{Shape: shape, Bytes: bytes})
}

// Shape returns the sizes of one sample of layer or input i.
func (o *operations) Shape(i int) []int64 {
	if i < 0 {
		return o.Inputs[-1-i].Shape
	}
	return o.Layers[i].Out
}

// Last returns the last of the sizes of i: the width of tokens.
func (o *operations) Last(i int) int64 {
	s := o.Shape(i)
	return s[len(s)-1]
}

func (o *operations) whole(i int) bool { return i >= 0 && o.Layers[i].Whole }

// Add appends a layer; its name is relative to the current module. If adapters are
// trained, the network's own parameters are frozen.
func (o *operations) Add(l models.Layer) int {
	l.Name = o.path(l.Name)
	l.Block = o.block
	l.Frozen = l.Frozen || o.Rank > 0 && len(l.Params) > 0
	if o.Frozen != nil {
		l.Frozen, l.NoAutocast, l.Bits = len(l.Params) > 0, true, *o.Frozen
	}
	for i, d := range l.Out {
		if d < 1 {
			o.Fail("%s would have the shape %v", l.Name, l.Out)
			l.Out = slices.Clone(l.Out)
			l.Out[i] = 1
		}
	}
	o.Layers = append(o.Layers, l)
	return len(o.Layers) - 1
}

// Expect reserves space for more layers.
func (o *operations) Expect(more int) {
	if cap(o.Layers)-len(o.Layers) < more {
		o.Layers = slices.Grow(o.Layers, more)
	}
}

// Op adds an operation without parameters.
func (o *operations) Op(kind, name string, out []int64, inputs ...int) int {
	whole := true
	for _, in := range inputs {
		whole = whole && o.whole(in)
	}
	return o.Add(models.Layer{Name: name, Type: kind, Inputs: o.places(inputs), Out: o.sizes(out), Whole: whole})
}

// Unary adds an operation whose output has the shape of its input.
func (o *operations) Unary(kind, name string, in int) int {
	return o.Op(kind, name, o.Shape(in), in)
}

// InPlace adds a unary operation that overwrites its input.
func (o *operations) InPlace(kind, name string, in int) int {
	i := o.Unary(kind, name, in)
	o.Layers[i].InPlace = true
	return i
}

// Keeping sets the tensors that layer i keeps for the backward pass.
func (o *operations) Keeping(i int, k models.Keeps) int {
	o.Layers[i].Keeps = &k
	return i
}

// Scale multiplies by a constant, and keeps nothing.
func (o *operations) Scale(name string, in int) int {
	return o.Keeping(o.Unary(models.Mul, name, in), models.Keeps{})
}

// Plus adds a + b.
func (o *operations) Plus(name string, a, b int) int {
	return o.Op(models.Add, name, o.Shape(a), a, b)
}

// PlusInPlace adds a += b.
func (o *operations) PlusInPlace(name string, a, b int) int {
	i := o.Plus(name, a, b)
	o.Layers[i].InPlace = true
	return i
}

// Times adds the product of a and b.
func (o *operations) Times(name string, a, b int) int {
	return o.Op(models.Mul, name, o.Shape(a), a, b)
}

// View adds a tensor of another shape that shares the memory of in.
func (o *operations) View(name string, in int, shape ...int64) int {
	return o.Op(models.View, name, shape, in)
}

// CopyOf adds a copy of in with another shape.
func (o *operations) CopyOf(name string, in int, shape ...int64) int {
	return o.Op(models.Copy, name, shape, in)
}

// PerSample marks layer i as existing once for each sample, although its inputs exist
// once.
func (o *operations) PerSample(i int) int {
	o.Layers[i].Whole = false
	return i
}

// Flatten makes one vector of each sample.
func (o *operations) Flatten(in int) int {
	n := int64(1)
	for _, d := range o.Shape(in) {
		n *= d
	}
	return o.View("flatten", in, n)
}

// Concat joins along the first dimension, the channels of images.
func (o *operations) Concat(name string, inputs ...int) int {
	out := slices.Clone(o.Shape(inputs[0]))
	for _, in := range inputs[1:] {
		out[0] += o.Shape(in)[0]
	}
	return o.Op(models.Concat, name, out, inputs...)
}

// Unused adds layers whose output no loss uses. Their weights get no gradient, so the
// optimizer has no states for them.
func (o *operations) Unused(add func()) {
	from := len(o.Layers)
	add()
	o.Untrained(from)
}

// Untrained freezes the weights of the layers from index from on.
func (o *operations) Untrained(from int) {
	for i := range o.Layers[from:] {
		o.Layers[from+i].Frozen = len(o.Layers[from+i].Params) > 0
	}
}

// NewInput declares a tensor of the batch and returns its index.
func (o *operations) NewInput(bytes int, shape ...int64) int {
	o.Input(bytes, shape...)
	return -len(o.Inputs)
}

// Freeze makes all layers from now on frozen and run without autocast, with a number of
// bits, until leave is called. 0 keeps the bits of the frozen layers.
func (o *operations) Freeze(bits int) (leave func()) {
	before, rank, targets := o.Frozen, o.Rank, o.Targets
	o.Frozen, o.Rank, o.Targets = &bits, 0, nil
	return func() { o.Frozen, o.Rank, o.Targets = before, rank, targets }
}

// Unblocked excludes the layers from index from on from checkpointing, so that they run
// only once.
func (o *operations) Unblocked(from int) {
	for i := range o.Layers[from:] {
		o.Layers[from+i].Block = 0
	}
}
