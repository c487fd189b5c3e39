package onnxfile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"carma/configs/models"
)

// Recognized tells whether r begins with an ONNX file; r loses no data. A
// ModelProto begins with its version, field 1, which no text does.
func Recognized(r *bufio.Reader) bool {
	head, _ := r.Peek(2)
	return len(head) > 1 && head[0] == 0x08 && head[1] > 0 && head[1] < 0x80
}

// Import makes a configuration from an ONNX file. name is the file's, for
// messages and as the model's name.
//
// The dimension of the samples is one named like a batch, or else the first one
// of the first input. The number of samples is o.Batch, or else the file's
// number, or else 1. Other dimensions that have only a name are o.Image or
// o.Sequence, or an assumed size. The result is valid; its Warnings tell the
// assumptions. An error is one line with the file's name and the operator. If r
// can seek, weights are skipped without being read.
func Import(name string, r io.Reader, o models.Overrides) (*models.Config, error) {
	c, err := load(name, r, o)
	if e, ok := errors.AsType[*models.Error](err); ok {
		e.File = name
		return nil, e
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return c, nil
}

func load(name string, r io.Reader, o models.Overrides) (*models.Config, error) {
	g, err := decode(r)
	if err != nil {
		return nil, err
	}
	n, err := connect(g)
	if err != nil {
		return nil, err
	}
	inputs, err := n.place(o)
	if err != nil {
		return nil, err
	}
	if err := n.shapes(); err != nil {
		return nil, err
	}
	c := n.config(inputs)
	base := filepath.Base(name)
	if c.Name = strings.ToValidUTF8(strings.TrimSuffix(base, filepath.Ext(base)), "?"); c.Name == "" {
		c.Name = strings.ToValidUTF8(base, "?")
	}
	o.Image, o.Sequence = 0, 0
	if len(c.Layers) == 0 {
		return nil, fault("nothing is computed from the inputs")
	}
	if o.Batch == 0 && n.batch == 1 {
		c.Warnings = append(c.Warnings, "the batch is taken as 1; say it with --batch")
	}
	return c.With(o)
}

// config makes the layers.
func (n *network) config(inputs []int32) *models.Config {
	c := &models.Config{
		Schema: models.Schema, Name: "onnx", Origin: models.FromONNX, Train: models.Train{Batch: int(min(n.batch, models.MaxBatch+1))},
	}
	for i, id := range inputs {
		v := &n.values[id]
		shape, _ := n.perSample(v)
		in := models.Input{Shape: shape}
		if size := sizeOf(v.kind); size != 4 {
			in.Bytes = size
		}
		v.layer = -1 - i
		c.Inputs = append(c.Inputs, in)
	}
	b := &builder{network: n, counted: map[int32]bool{}}
	b.match()
	b.build()
	b.remarks()
	c.Layers, c.Warnings = b.layers, b.notes
	c.Family = models.FamilyOf(c.Layers)
	c.Train.Precision = b.precision()
	return c
}

// remarks adds the warnings about the network as a whole.
func (b *builder) remarks() {
	if b.folds > 2 || b.norms == 0 && b.convs > 2 && 2*(b.bare+b.folds) > b.convs {
		b.warn("convolutions with biases that are not their modules', or without norms: if the network has batch norms, the exporter has " +
			"folded them in and memory and parameters are too low; export the model in training mode (docs/models.md)")
	}
	if b.attentions > 0 {
		b.warn("attention is taken as computed in one kernel, %d times; unfused attention keeps its scores", b.attentions)
	}
	b.warn("what exporters leave out is not seen: dropout, losses, operations in place")
}

// precision is that of the weights if all have 16 bits.
func (b *builder) precision() models.Precision {
	kinds := map[int64]bool{}
	for w := range b.counted {
		kinds[b.values[w].kind] = true
	}
	switch {
	case len(kinds) == 1 && kinds[kindFloat16]:
		return models.FP16
	case len(kinds) == 1 && kinds[kindBfloat16]:
		return models.BF16
	}
	return ""
}
