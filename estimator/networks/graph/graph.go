package graph

import (
	"fmt"
	"slices"

	"carma/configs/models"
)

// Indexes of the model's first and second input.
const (
	Data   = -1
	Second = -2
)

// Graph collects the layers of one network. Its methods add operations and return their
// indexes. Names are relative to the current module.
type Graph struct {
	Inputs  []models.Input
	Layers  []models.Layer
	Scope   string   // path of the module being built
	Targets []string // names of the layers that get adapters, or none for the builder's default
	Rank    int64    // rank of the adapters, or 0 if everything is trained
	Fixed   bool     // batch norms are fixed
	Frozen  *int     // bits of added layers that are frozen and run without autocast, or nil if they are not frozen

	room
	block, blocks int             // number of the current checkpointed block, or 0 if none; number of all blocks
	linears       map[string]bool // names of all linear layers, collected if there are targets
	dora          bool            // adapters have a magnitude
	adapts        int             // adapters added so far
	// err is the first error. Later layers then get dimensions of 1, and the result is
	// dropped.
	err error
}

// Fail records the reason why the network cannot be built. Only the first call counts.
func (g *Graph) Fail(format string, args ...any) {
	if g.err == nil {
		g.err = fmt.Errorf(format, args...)
	}
}

// Module enters a module below the current one. leave returns to the previous module.
func (g *Graph) Module(name string) (leave func()) {
	before := g.Scope
	g.Scope = g.path(name)
	return func() { g.Scope = before }
}

// StartBlock enters a module that checkpointing recomputes as a unit. Operations without
// a gradient are not recomputed.
func (g *Graph) StartBlock(name string) (leave func()) {
	leaveModule := g.Module(name)
	if g.Frozen != nil {
		return leaveModule
	}
	g.blocks++
	g.block = g.blocks
	return func() {
		g.block = 0
		leaveModule()
	}
}

func (g *Graph) path(name string) string {
	if g.Scope == "" || name == "" {
		return g.Scope + name
	}
	return g.name(g.Scope, name)
}

// Input declares a tensor of the batch with elements of the given bytes. Elements of token
// ids and labels have 8 bytes.
func (g *Graph) Input(bytes int, shape ...int64) {
	g.Inputs = append(g.Inputs, models.Input{Shape: shape, Bytes: bytes})
}

// Shape returns the sizes of one sample of layer or input i.
func (g *Graph) Shape(i int) []int64 {
	if i < 0 {
		return g.Inputs[-1-i].Shape
	}
	return g.Layers[i].Out
}

// Last returns the last of the sizes of i: the width of tokens.
func (g *Graph) Last(i int) int64 {
	s := g.Shape(i)
	return s[len(s)-1]
}

func (g *Graph) whole(i int) bool { return i >= 0 && g.Layers[i].Whole }

// Add appends a layer; its name is relative to the current module. If adapters are
// trained, the network's own parameters are frozen.
func (g *Graph) Add(l models.Layer) int {
	l.Name = g.path(l.Name)
	l.Block = g.block
	l.Frozen = l.Frozen || g.Rank > 0 && len(l.Params) > 0
	if g.Frozen != nil {
		l.Frozen, l.NoAutocast, l.Bits = len(l.Params) > 0, true, *g.Frozen
	}
	for i, d := range l.Out {
		if d < 1 {
			g.Fail("%s would have the shape %v", l.Name, l.Out)
			l.Out = slices.Clone(l.Out)
			l.Out[i] = 1
		}
	}
	g.Layers = append(g.Layers, l)
	return len(g.Layers) - 1
}

// Expect reserves space for more layers.
func (g *Graph) Expect(more int) {
	if cap(g.Layers)-len(g.Layers) < more {
		g.Layers = slices.Grow(g.Layers, more)
	}
}

// Op adds an operation without parameters.
func (g *Graph) Op(kind, name string, out []int64, inputs ...int) int {
	whole := true
	for _, in := range inputs {
		whole = whole && g.whole(in)
	}
	return g.Add(models.Layer{Name: name, Type: kind, Inputs: g.places(inputs), Out: g.sizes(out), Whole: whole})
}

// Unary adds an operation whose output has the shape of its input.
func (g *Graph) Unary(kind, name string, in int) int {
	return g.Op(kind, name, g.Shape(in), in)
}

// InPlace adds a unary operation that overwrites its input.
func (g *Graph) InPlace(kind, name string, in int) int {
	i := g.Unary(kind, name, in)
	g.Layers[i].InPlace = true
	return i
}

// Keeping sets the tensors that layer i keeps for the backward pass.
func (g *Graph) Keeping(i int, k models.Keeps) int {
	g.Layers[i].Keeps = &k
	return i
}

// Scale multiplies by a constant, and keeps nothing.
func (g *Graph) Scale(name string, in int) int {
	return g.Keeping(g.Unary(models.Mul, name, in), models.Keeps{})
}

// Plus adds a + b.
func (g *Graph) Plus(name string, a, b int) int {
	return g.Op(models.Add, name, g.Shape(a), a, b)
}

// PlusInPlace adds a += b.
func (g *Graph) PlusInPlace(name string, a, b int) int {
	i := g.Plus(name, a, b)
	g.Layers[i].InPlace = true
	return i
}

// Times adds the product of a and b.
func (g *Graph) Times(name string, a, b int) int {
	return g.Op(models.Mul, name, g.Shape(a), a, b)
}

// View adds a tensor of another shape that shares the memory of in.
func (g *Graph) View(name string, in int, shape ...int64) int {
	return g.Op(models.View, name, shape, in)
}

// CopyOf adds a copy of in with another shape.
func (g *Graph) CopyOf(name string, in int, shape ...int64) int {
	return g.Op(models.Copy, name, shape, in)
}

// PerSample marks layer i as existing once for each sample, although its inputs exist
// once.
func (g *Graph) PerSample(i int) int {
	g.Layers[i].Whole = false
	return i
}

// Flatten makes one vector of each sample.
func (g *Graph) Flatten(in int) int {
	n := int64(1)
	for _, d := range g.Shape(in) {
		n *= d
	}
	return g.View("flatten", in, n)
}

// Concat joins along the first dimension, the channels of images.
func (g *Graph) Concat(name string, inputs ...int) int {
	out := slices.Clone(g.Shape(inputs[0]))
	for _, in := range inputs[1:] {
		out[0] += g.Shape(in)[0]
	}
	return g.Op(models.Concat, name, out, inputs...)
}

// Drop adds a dropout, which keeps its mask.
func (g *Graph) Drop(name string, in int) int { return g.Unary(models.Dropout, name, in) }

// DropIf adds a dropout if the network has one there.
func (g *Graph) DropIf(has bool, name string, in int) int {
	if !has {
		return in
	}
	return g.Drop(name, in)
}

// DropInPlace adds a dropout in place. PyTorch then keeps its factors as 32-bit
// numbers instead of a mask of one byte each.
func (g *Graph) DropInPlace(name string, in int) int {
	n := int64(1)
	for _, d := range g.Shape(in) {
		n *= d
	}
	return g.Keeping(g.InPlace(models.Dropout, name, in), models.Keeps{Bytes: 4 * n})
}

// Skip adds stochastic depth: it multiplies a branch by one number per sample.
func (g *Graph) Skip(name string, in int) int {
	return g.Keeping(g.Unary(models.Mul, name, in), models.Keeps{Bytes: 4})
}

// CrossEntropy ends a network. labels is an input of the model, or made from one.
func (g *Graph) CrossEntropy(name string, logits, labels int) int {
	return g.Add(models.Layer{
		Name: name, Type: models.CrossEntropy, Inputs: []int{logits, labels}, Out: []int64{1}, Whole: true,
	})
}

// Loss ends a network with another loss.
func (g *Graph) Loss(name string, inputs ...int) int {
	return g.Add(models.Layer{Name: name, Type: models.Loss, Inputs: inputs, Out: []int64{1}, Whole: true})
}

// NarrowCrossEntropy ends a network. Without autocast it computes in the 16 bits of its
// logits, because the model passes them to the loss unconverted.
func (g *Graph) NarrowCrossEntropy(name string, logits, labels int) int {
	i := g.CrossEntropy(name, logits, labels)
	g.Layers[i].Bits = 16
	return i
}

// Unused adds layers whose output no loss uses. Their weights get no gradient, so the
// optimizer has no states for them.
func (g *Graph) Unused(add func()) {
	from := len(g.Layers)
	add()
	g.Untrained(from)
}

// Untrained freezes the weights of the layers from index from on.
func (g *Graph) Untrained(from int) {
	for i := range g.Layers[from:] {
		g.Layers[from+i].Frozen = len(g.Layers[from+i].Params) > 0
	}
}

// Trained adds layers that are trained in addition to adapters, as PEFT trains the layers
// of a new head.
func (g *Graph) Trained(add func()) {
	rank := g.Rank
	g.Rank = 0
	add()
	g.Rank = rank
}

// NewInput declares a tensor of the batch and returns its index.
func (g *Graph) NewInput(bytes int, shape ...int64) int {
	g.Input(bytes, shape...)
	return -len(g.Inputs)
}

// Freeze makes all layers from now on frozen and run without autocast, with a number of
// bits, until leave is called. 0 keeps the bits of the frozen layers.
func (g *Graph) Freeze(bits int) (leave func()) {
	before, rank, targets := g.Frozen, g.Rank, g.Targets
	g.Frozen, g.Rank, g.Targets = &bits, 0, nil
	return func() { g.Frozen, g.Rank, g.Targets = before, rank, targets }
}

// Stored adds frozen parameters that no layer of the step uses.
func (g *Graph) Stored(name string, in int, params []int64) int {
	return g.Add(models.Layer{Name: name, Type: models.View, Inputs: []int{in}, Out: slices.Clone(g.Shape(in)), Params: params, Keeps: &models.Keeps{}, Frozen: true})
}

// Total ends a network with the sum of its losses. The script holds scores until the
// backward pass is over; it frees the scores of the previous step when the network
// returns.
func (g *Graph) Total(loss int, scores ...int) {
	i := g.Keeping(g.Loss("total", loss), models.Keeps{})
	g.Layers[i].Holds = scores
}

// Unblocked excludes the layers from index from on from checkpointing, so that they run
// only once.
func (g *Graph) Unblocked(from int) {
	for i := range g.Layers[from:] {
		g.Layers[from+i].Block = 0
	}
}
