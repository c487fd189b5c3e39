package graph

import (
	"slices"

	"carma/configs/models"
)

// Indexes of the model's first and second input.
const (
	Data   = -1
	Second = -2
)

// Graph builds the layers of one network. Its methods add the modules of networks, such as
// convolutions and linear layers, and return their indexes. Names are relative to the
// current module.
type Graph struct {
	operations
	Fixed bool // batch norms are fixed
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
