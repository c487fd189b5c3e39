package models

import (
	"fmt"
	"slices"
)

// known are the types for quick look-ups.
var known = func() map[string]bool {
	m := map[string]bool{}
	for _, t := range Types() {
		m[t] = true
	}
	return m
}()

// Validate checks that c describes a network that can be: known words,
// positive sizes within the limits, inputs that point backwards. The error is
// an [*Error] that names the field.
func (c *Config) Validate() error {
	if c.Schema != Schema {
		return wrong("schema", "version %d is not known; this carma reads version %d", c.Schema, Schema)
	}
	if c.Name == "" {
		return wrong("name", "empty; write for example resnet50")
	}
	if c.Family == "" {
		return wrong("family", "empty; write one of %v", Families())
	}
	if err := oneOf("family", "family", c.Family, Families()); err != nil {
		return err
	}
	if err := c.Train.validate(); err != nil {
		return err
	}
	if len(c.Inputs) == 0 || len(c.Inputs) > MaxList {
		return wrong("inputs", "%d inputs; a model has 1 to %d", len(c.Inputs), MaxList)
	}
	total := int64(0)
	for i := range c.Inputs {
		n, err := c.Inputs[i].validate(i)
		if err != nil {
			return err
		}
		total = Plus(total, n)
	}
	if len(c.Layers) == 0 || len(c.Layers) > MaxLayers {
		return wrong("layers", "%d layers; a model has 1 to %d", len(c.Layers), MaxLayers)
	}
	for i := range c.Layers {
		if field, what := c.layer(i); what != "" {
			return wrong(fmt.Sprintf("layers[%d].%s", i, field), "%s", what)
		}
	}
	return c.totals(total)
}

// totals bounds what all layers have together.
func (c *Config) totals(inputs int64) error {
	if n := c.Params(); n > MaxElements {
		return wrong("layers", "the parameters of all layers are more than 2^50")
	}
	if n := Times(Plus(inputs, c.Activations()), int64(c.Train.Batch)); n > MaxElements {
		return wrong("layers", "the outputs of all layers are more than 2^50 elements at batch %d; take a smaller batch or shapes", c.Train.Batch)
	}
	whole, kept := int64(0), int64(0)
	for i := range c.Layers {
		l := &c.Layers[i]
		if l.Whole {
			whole = Plus(whole, l.Elements())
		}
		if l.Keeps != nil {
			kept = Plus(kept, Plus(Times(l.Keeps.Bytes, int64(c.Train.Batch)), l.Keeps.Whole))
		}
	}
	if whole > MaxElements || kept > MaxElements {
		return wrong("layers", "what all layers keep is more than 2^50 bytes")
	}
	return nil
}

func (t *Train) validate() error {
	if t.Batch < 1 || t.Batch > MaxBatch {
		return wrong("train.batch", "%d is no batch; it is 1 to %d samples", t.Batch, MaxBatch)
	}
	if t.GPUs < 0 || t.GPUs > MaxGPUs {
		return wrong("train.gpus", "%d is no number of GPUs; it is 0 to %d", t.GPUs, MaxGPUs)
	}
	for _, err := range []error{
		oneOf("train.precision", "precision", t.Precision, Precisions()),
		oneOf("train.optimizer", "optimizer", t.Optimizer, Optimizers()),
		oneOf("train.implementation", "implementation", t.Implementation, Implementations()),
		oneOf("train.parallel", "kind of parallelism", t.Parallel, Parallels()),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

// validate returns the elements of input i.
func (in *Input) validate(i int) (int64, error) {
	if what := shapeFault(in.Shape); what != "" {
		return 0, wrong(fmt.Sprintf("inputs[%d].shape", i), "%s", what)
	}
	if in.Bytes < 0 || in.Bytes > 16 {
		return 0, wrong(fmt.Sprintf("inputs[%d].bytes", i), "%d bytes for an element; it is 1 to 16, or 0 for 4", in.Bytes)
	}
	return in.Elements(), nil
}

// shapeFault says what is wrong with a shape.
func shapeFault(shape []int64) string {
	if len(shape) > MaxDims {
		return fmt.Sprintf("%d dimensions; at most %d", len(shape), MaxDims)
	}
	for _, d := range shape {
		if d < 1 {
			return fmt.Sprintf("a dimension of %d; each is at least 1", d)
		}
	}
	if Product(shape) > MaxElements {
		return fmt.Sprintf("%v has more than 2^50 elements", shape)
	}
	return ""
}

// layer checks layer i and returns the field at fault and what is wrong.
func (c *Config) layer(i int) (field, what string) {
	l := &c.Layers[i]
	if !known[l.Type] {
		return "type", fmt.Sprintf("unknown type %s; %s", Short(l.Type), choose(l.Type, Types()))
	}
	if what := shapeFault(l.Out); what != "" {
		return "out", what
	}
	if len(l.Inputs) > MaxList {
		return "inputs", fmt.Sprintf("%d inputs; at most %d", len(l.Inputs), MaxList)
	}
	for _, from := range l.Inputs {
		if from >= i {
			return "inputs", fmt.Sprintf("%d is not before layer %d; inputs are earlier layers", from, i)
		}
		if from < -len(c.Inputs) {
			return "inputs", fmt.Sprintf("%d is no input of the model; it has -1 to %d", from, -len(c.Inputs))
		}
	}
	if len(l.Params) > MaxList {
		return "params", fmt.Sprintf("%d tensors; at most %d", len(l.Params), MaxList)
	}
	if slices.ContainsFunc(l.Params, func(n int64) bool { return n < 1 }) || Sum(l.Params) > MaxElements {
		return "params", "a tensor has from 1 to 2^50 elements"
	}
	return c.settings(l)
}

// settings checks what only some types have.
func (c *Config) settings(l *Layer) (field, what string) {
	if what := shapeFault(l.Kernel); what != "" {
		return "kernel", what
	}
	for _, n := range []struct {
		field string
		value int64
	}{{"stride", l.Stride}, {"groups", l.Groups}, {"heads", l.Heads}, {"block", int64(l.Block)}} {
		if n.value < 0 || n.value > MaxElements {
			return n.field, fmt.Sprintf("%d; it is 0 or more", n.value)
		}
	}
	if l.Type == Attention && len(l.Out) > 0 {
		keys := l.Out[0]
		for _, from := range l.Inputs {
			if from >= 0 && len(c.Layers[from].Out) > 0 {
				keys = max(keys, c.Layers[from].Out[0])
			}
		}
		scores := Times(Times(max(l.Heads, 1), l.Out[0]), keys)
		if Times(scores, int64(c.Train.Batch)) > MaxElements && l.Unfused {
			return "unfused", "the scores of a batch are more than 2^50 elements"
		}
	}
	if k := l.Keeps; k != nil {
		if k.Bytes < 0 || k.Whole < 0 || k.Bytes > MaxElements || k.Whole > MaxElements {
			return "keeps", "bytes and whole are 0 to 2^50"
		}
		for _, at := range k.Inputs {
			if at < 0 || at >= max(1, len(l.Inputs)) {
				return "keeps", fmt.Sprintf("%d is no position in inputs", at)
			}
		}
	}
	return "", ""
}
