package models

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// known contains the types, for fast look-up.
var known = func() map[string]bool {
	m := map[string]bool{}
	for _, t := range Types() {
		m[t] = true
	}
	return m
}()

// Validate checks that c describes a possible network: known words, positive
// sizes within the limits, inputs from earlier layers. The error is an [*Error]
// with the field.
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

// totals checks the sums over all layers.
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
		return wrong("layers", "all layers together keep more than 2^50 bytes")
	}
	return nil
}

// Check checks the settings of a training independently of its network.
func (t *Train) Check() error { return t.validate() }

func (t *Train) validate() error {
	if t.Batch < 1 || t.Batch > MaxBatch {
		return wrong("train.batch", "%d is no batch; it is 1 to %d samples", t.Batch, MaxBatch)
	}
	if t.Accumulate < 0 || t.Accumulate > MaxBatch {
		return wrong("train.accumulate", "%d is no number of backward passes; it is 0 to %d", t.Accumulate, MaxBatch)
	}
	if t.GPUs < 0 || t.GPUs > MaxGPUs {
		return wrong("train.gpus", "%d is no number of GPUs; it is 0 to %d", t.GPUs, MaxGPUs)
	}
	if err := t.offloads(); err != nil {
		return err
	}
	if t.Masters && t.Precision != BF16 && t.Precision != FP16 {
		return wrong("train.masters", "precision %s has 32-bit weights already; leave it out, or take bf16 or fp16", cmp.Or(t.Precision, FP32))
	}
	for _, err := range []error{
		oneOf("train.precision", "precision", t.Precision, Precisions()),
		oneOf("train.optimizer", "optimizer", t.Optimizer, Optimizers()),
		oneOf("train.implementation", "implementation", t.Implementation, Implementations()),
		oneOf("train.zero_grad", "time to set gradients to none", t.ZeroGrad, ZeroGrads()),
		oneOf("train.attention", "kind of attention", t.Attention, Attentions()),
		oneOf("train.loss", "way to compute the loss", t.Loss, Losses()),
		t.parallel(), t.sequenceParallel(),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

// parallel checks the kind of parallelism.
func (t *Train) parallel() error {
	n := t.Parallel.TensorParallel()
	if n == 0 {
		return oneOf("train.parallel", "kind of parallelism", t.Parallel, append(Parallels(), "tp:2"))
	}
	if t.GPUs > 1 && t.GPUs != n {
		return wrong("train.parallel", "%s is over %d GPUs, not %d; it is not known together with another kind", t.Parallel, n, t.GPUs)
	}
	return nil
}

// sequenceParallel checks the number of GPUs over which the tokens of a sample are
// spread.
func (t *Train) sequenceParallel() error {
	n, data := t.SequenceParallel, t.Parallel != "" && t.Parallel != NotParallel
	switch {
	case n == 0 || n == 1:
		return nil
	case n < 0 || n > MaxGPUs:
		return wrong("train.sequence_parallel", "%d is no number of GPUs; it is 0 to %d", n, MaxGPUs)
	case t.Parallel.TensorParallel() > 0 || t.Parallel == DataParallel:
		return wrong("train.sequence_parallel", "it is not known together with parallel %s", t.Parallel)
	case t.GPUs > 1 && (t.GPUs%n != 0 || !data && t.GPUs != n):
		return wrong("train.sequence_parallel", "the tokens of a sample are spread over %d GPUs, and the training has %d; take as many, or with parallel a multiple", n, t.GPUs)
	}
	return nil
}

// offloads checks the values of offloading.
func (t *Train) offloads() error {
	if t.Offload == "" {
		return nil
	}
	for word := range strings.SplitSeq(t.Offload, ",") {
		if err := oneOf("train.offload", "thing to offload", cmp.Or(word, " "), Offloadable()); err != nil {
			return err
		}
	}
	if t.Offloads(OffloadParameters) && t.Parallel != FSDP && t.Parallel != FSDPGrad && t.Parallel != ZeRO3 {
		return wrong("train.offload", "parameters are offloaded where they are put together for use: with parallel fsdp:full, fsdp:grad or zero3")
	}
	return nil
}

// validate checks input i and returns its number of elements.
func (in *Input) validate(i int) (int64, error) {
	if what := shapeFault(in.Shape); what != "" {
		return 0, wrong(fmt.Sprintf("inputs[%d].shape", i), "%s", what)
	}
	if in.Bytes < 0 || in.Bytes > 16 {
		return 0, wrong(fmt.Sprintf("inputs[%d].bytes", i), "%d bytes for an element; it is 1 to 16, or 0 for 4", in.Bytes)
	}
	return in.Elements(), nil
}

// shapeFault returns the error in a shape, or "" if there is none.
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

// layer checks layer i. It returns the wrong field and the fault.
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
	if len(l.Holds) > MaxList {
		return "holds", fmt.Sprintf("%d layers; at most %d", len(l.Holds), MaxList)
	}
	for _, held := range l.Holds {
		if held < 0 || held >= i {
			return "holds", fmt.Sprintf("%d is not a layer before layer %d; what is held are earlier layers", held, i)
		}
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

// settings checks fields that only some types have.
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
	if l.Cell != nil {
		if what := l.Cell.fault(l); what != "" {
			return "cell", what
		}
	}
	switch l.Bits {
	case 0, 4, 8, 16, 32:
	default:
		return "bits", fmt.Sprintf("%d bits for a number; it is 4, 8, 16 or 32, or 0 for those of the precision", l.Bits)
	}
	if k := l.Keeps; k != nil {
		if k.Bytes < 0 || k.Whole < 0 || k.Bytes > MaxElements || k.Whole > MaxElements {
			return "keeps", "bytes and whole are 0 to 2^50"
		}
		for _, at := range slices.Concat(k.Inputs, k.Wide) {
			if at < 0 || at >= max(1, len(l.Inputs)) {
				return "keeps", fmt.Sprintf("%d is no position in inputs", at)
			}
		}
	}
	return "", ""
}
