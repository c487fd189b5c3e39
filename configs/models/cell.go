package models

import (
	"fmt"
	"strings"

	"carma/internal/suggest"
)

// Cell describes a recurrent layer of PyTorch (nn.LSTM, nn.GRU, nn.RNN): one call of
// cuDNN for any number of layers.
type Cell struct {
	// Kind is lstm, gru or rnn.
	Kind string `json:"kind"`
	// Hidden is the width of the state of one direction.
	Hidden int64 `json:"hidden"`
	// Layers is the number of stacked layers, or 0 for one.
	Layers int64 `json:"layers,omitempty"`
	// Directions is 1, or 2 for a bidirectional layer, or 0 for 1.
	Directions int64 `json:"directions,omitempty"`
	// Projection is the output width of one direction of an LSTM, or 0 for Hidden.
	Projection int64 `json:"projection,omitempty"`
	// Dropout is set if there is dropout between its layers.
	Dropout bool `json:"dropout,omitempty"`
}

// Cells lists the kinds of recurrent layers. In a file each is also a type.
func Cells() []string { return []string{"lstm", "gru", "rnn"} }

// gates returns the number of products with the input in each step.
func (c *Cell) gates() int64 {
	switch c.Kind {
	case "lstm":
		return 4
	case "gru":
		return 3
	}
	return 1
}

func (c *Cell) layers() int64     { return max(c.Layers, 1) }
func (c *Cell) directions() int64 { return max(c.Directions, 1) }

// Width returns the width of the output.
func (c *Cell) Width() int64 {
	if c.Projection > 0 {
		return c.Projection * c.directions()
	}
	return c.Hidden * c.directions()
}

// Params returns the sizes of the parameter tensors for an input of that width, as in
// PyTorch: for each layer and direction both matrices, both biases, and the projection.
func (c *Cell) Params(input int64) []int64 {
	var all []int64
	out, wide := c.Width()/c.directions(), Times(c.gates(), c.Hidden)
	for range c.layers() {
		for range c.directions() {
			all = append(all, Times(wide, input), Times(wide, out), wide, wide)
			if c.Projection > 0 {
				all = append(all, Times(c.Projection, c.Hidden))
			}
		}
		input = c.Width()
	}
	return all
}

// Reserve returns the size of cuDNN's reserve space for the backward pass, without input
// and output: a count of numbers, and the bytes of masks. out is the count of numbers in
// the output.
//
// Only a program with a GPU can ask cuDNN for this size, and it is undocumented. A report
// of 2017 (github.com/pytorch/pytorch/issues/2895, Tesla P100) contains two sizes: for 4
// layers of 320, with 25,000 samples x steps, in 32 bits, 736,000,000 bytes with nn.LSTM
// and 864,000,000 with nn.GRU. The layers, widths and samples follow from its numbers of
// parameters and its sizes. 5 numbers for each state of a layer of an LSTM, 6 of a GRU,
// and the outputs between layers give both sizes to the byte. This is inferred from these
// two sizes, and was not measured here. Other kinds count as an LSTM, two directions as
// twice as much. A dropout mask counts as one byte per number.
func (c *Cell) Reserve(out int64) (numbers, masks int64) {
	states := Times(out/max(c.Width(), 1), Times(c.directions(), c.Hidden))
	each := int64(5)
	if c.Kind == "gru" {
		each = 6
	}
	if c.Dropout {
		masks = Times(states, c.layers()-1)
	}
	return Times(states, Plus(Times(each, c.layers()), c.layers()-1)), masks
}

// States returns the count of numbers in the initial states of one sample.
func (c *Cell) States() int64 {
	n := Times(c.layers(), c.Width())
	if c.Kind == "lstm" {
		return Plus(n, Times(c.layers(), Times(c.directions(), c.Hidden)))
	}
	return n
}

// fault returns the error in the cell of layer l, or "" if there is none.
func (c *Cell) fault(l *Layer) string {
	switch {
	case l.Type != Recurrent:
		return "only a recurrent layer has a cell; leave it out"
	case c.gates() == 1 && c.Kind != "rnn":
		return fmt.Sprintf("unknown kind %s; it is one of %s; nearest: %s", Short(c.Kind), strings.Join(Cells(), ", "), suggest.Names(c.Kind, Cells(), 1)[0])
	case c.Hidden < 1 || c.Hidden > 1<<24:
		return fmt.Sprintf("a hidden width of %d; it is 1 to 2^24", c.Hidden)
	case c.Layers < 0 || c.Layers > 256:
		return fmt.Sprintf("%d layers; it is 1 to 256", c.Layers)
	case c.Directions < 0 || c.Directions > 2:
		return fmt.Sprintf("%d directions; it is 1 or 2", c.Directions)
	case c.Projection < 0 || c.Projection > 0 && (c.Projection >= c.Hidden || c.Kind != "lstm"):
		return fmt.Sprintf("a projection of %d; it is less than hidden, and only of an lstm", c.Projection)
	case l.Elements()%c.Width() != 0:
		return fmt.Sprintf("its output is %d wide, and %v is no multiple of that", c.Width(), l.Out)
	}
	return ""
}

// cells converts layers of the types lstm, gru and rnn to type recurrent. Layers without
// parameters get them from the width of their input.
func (c *Config) cells() {
	for i := range c.Layers {
		l := &c.Layers[i]
		if l.Cell != nil && l.Cell.Kind != strings.ToLower(l.Cell.Kind) {
			cell := *l.Cell
			lower(&cell.Kind)
			l.Cell = &cell
		}
		if kind := l.Type; kind == "lstm" || kind == "gru" || kind == "rnn" {
			cell := Cell{Kind: kind}
			if l.Cell != nil {
				cell = *l.Cell
				cell.Kind = kind
			} else if len(l.Out) > 0 {
				cell.Hidden = l.Out[len(l.Out)-1]
			}
			l.Type, l.Cell = Recurrent, &cell
		}
		if l.Cell == nil || l.Type != Recurrent || len(l.Params) > 0 || l.Tied || l.Cell.fault(l) != "" {
			continue
		}
		if in := c.shapeInto(i); len(in) > 0 {
			l.Params = l.Cell.Params(in[len(in)-1])
		}
	}
}

// shapeInto returns the shape of the first input of layer i, or nil if there is none.
func (c *Config) shapeInto(i int) []int64 {
	at := i - 1
	if from := c.Layers[i].Inputs; len(from) > 0 {
		at = from[0]
	}
	switch {
	case at >= 0 && at < i:
		return c.Layers[at].Out
	case at < 0 && -at <= len(c.Inputs):
		return c.Inputs[-at-1].Shape
	}
	return nil
}
