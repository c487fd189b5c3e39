package step

import (
	"cmp"
	"fmt"
	"slices"

	"carma/configs/models"
	"carma/estimator/allocator"
)

// Plan is a configuration prepared for simulation. Sizes are in bytes, for the batch of
// one GPU. Each tensor has a storage.
type Plan struct {
	layers   []layer
	values   []value // the model's inputs, then the layers' outputs
	storages []storage
	inputs   int     // number of values that are inputs of the model
	cached   []int32 // values of the cache that the model returns and the script holds
	weights  []weight
	// lists stores the lists of all layers one after the other, which takes fewer Go
	// allocations.
	lists    []int32
	convs    bool // the model has a convolution, so cuDNN is loaded
	products bool // the model has a product of matrices
	shards   int64
	train    models.Train
}

// Workspaces reports whether any layer needs a workspace.
func (p *Plan) Workspaces() bool {
	return slices.ContainsFunc(p.layers, func(l layer) bool { return l.scratch > 0 })
}

// layer is one operation.
type layer struct {
	kind    string
	inputs  []int32 // values; the storage of an input is values[...].storage
	holds   []int32 // values that the program still references
	value   int32
	tied    int32 // weight of another layer that this layer shares, or none
	out     int64 // bytes of the output; 0 for a view
	clone   int64 // bytes of the kept copy of an overwritten input
	kept    []int32
	extra   int64 // bytes kept in addition
	scratch int64 // workspace in each direction
	scored  int64 // bytes of the 32-bit scores of unfused attention, or 0
	weights []int32
	cast    int64 // bytes of 16-bit copies of the layer's weights
	// dequantized is the size in bytes of the dequantized weight in the product of its
	// gradient. meanwhile is the temporary memory while the layer is computed, in bytes.
	dequantized, meanwhile int64
	attached               int32    // storage that the layer's autograd node keeps, or none
	chunks                 *chunked // the plan of a chunked cross-entropy, or nil
	block                  int
	alias                  bool // the output is in the memory of the first input
	passes                 bool // the gradient of the inputs is the gradient of the output
	grad                   bool // the output needs a gradient
	narrow                 bool // a cross-entropy of 16-bit numbers
	mixed                  bool // a cross-entropy of 16-bit numbers under autocast
}

// storage is a piece of memory that one or more values share.
type storage struct {
	bytes   int64
	lastUse int32
}

type value struct {
	storage int32
	bytes   int64
	element int64
	grad    bool
	part    bool // each GPU has a part of the value
}

// errAt returns an error that names the layer.
func errAt(i int, l *models.Layer, format string, args ...any) error {
	name := l.Name
	if name == "" {
		name = l.Type
	}
	return fmt.Errorf("layer %d (%s): %s", i+1, name, fmt.Sprintf(format, args...))
}

// elements multiplies a shape with a batch. It returns false if the product is too large.
func elements(shape []int64, batch int64) (int64, bool) {
	n := batch
	for _, d := range shape {
		if d <= 0 || n > allocator.MaxRequest/d {
			return 0, false
		}
		n *= d
	}
	return n, n <= allocator.MaxRequest
}

// perGPU returns the number of samples on one GPU. With sequence parallelism it returns
// the number of samples on a group of GPUs that share the tokens of each sample.
func perGPU(t models.Train) int64 {
	b := int64(max(t.Batch, 1))
	if n := int64(t.GPUs / max(t.SequenceParallel, 1)); n > 1 && t.Parallel.TensorParallel() == 0 && t.Parallel != "" && t.Parallel != models.NotParallel {
		return (b + n - 1) / n
	}
	return b
}

// planner builds a [Plan].
type planner struct {
	*Plan
	config   *models.Config
	batch    int64
	autocast bool
	tokens   int64   // number of GPUs over which the tokens of each sample are spread, at least 1
	tensor   int64   // number of GPUs over which each layer is split, or 0
	list     []int32 // buffer for a list of the layer being planned
}

// underAutocast reports whether the training runs under autocast. A training of 32-bit
// adapters on 16-bit weights also does, because products need operands of one type.
func underAutocast(c *models.Config) bool {
	switch c.Train.Precision {
	case models.AMP:
		return true
	case models.BF16, models.FP16:
		return slices.ContainsFunc(c.Layers, func(l models.Layer) bool { return l.Bits == 32 && !l.Frozen && len(l.Params) > 0 })
	}
	return false
}

// Prepare checks a configuration's sizes. An error names the layer.
func Prepare(c *models.Config) (*Plan, error) {
	p := &planner{Plan: newPlan(c), config: c, batch: perGPU(c.Train), tokens: int64(max(c.Train.SequenceParallel, 1)), autocast: underAutocast(c), tensor: int64(c.Train.Parallel.TensorParallel())}
	if sharded(c.Train.Parallel) {
		p.shards = int64(max(c.Train.GPUs, c.Train.SequenceParallel, 1))
	}
	for _, in := range c.Inputs {
		n, ok := elements(in.Shape, p.batch)
		if !ok {
			return nil, fmt.Errorf("input of shape %v at batch size %d is out of range", in.Shape, p.batch)
		}
		n = p.spread(n)
		size := int64(in.Bytes)
		if size == 0 {
			size = p.float()
		}
		p.values = append(p.values, value{storage: p.store(n * size), bytes: n * size, element: size})
	}
	if len(c.Inputs) == 0 {
		p.inputs = 1
		p.values = append(p.values, value{storage: p.store(0), element: 4})
	}
	for i := range c.Layers {
		if err := p.add(i, &c.Layers[i]); err != nil {
			return nil, err
		}
	}
	if err := cmp.Or(p.undivided(), p.unspread(), p.chunk(c)); err != nil {
		return nil, err
	}
	p.loss()
	for _, v := range p.cached {
		p.used(v, len(p.layers))
	}
	for i, l := range p.layers {
		p.used(l.value, i)
		for _, v := range l.inputs {
			p.used(v, i)
		}
		for _, v := range l.holds {
			p.used(v, i)
		}
	}
	return p.Plan, nil
}

// used records that layer i uses a value.
func (p *planner) used(v int32, i int) {
	s := &p.storages[p.values[v].storage]
	s.lastUse = max(s.lastUse, int32(i))
}

// float returns the size of a weight's numbers in bytes.
func (p *planner) float() int64 {
	switch p.train.Precision {
	case models.BF16, models.FP16:
		return 2
	}
	return 4
}

func (p *planner) store(bytes int64) int32 {
	p.storages = append(p.storages, storage{bytes: bytes})
	return int32(len(p.storages) - 1)
}

// input resolves an index of [models.Layer.Inputs] to a value, or returns false if there
// is no such value.
func (p *planner) input(i, at int) (int32, bool) {
	if at < 0 {
		v := -at - 1
		return int32(v), v < p.inputs
	}
	return int32(p.inputs + at), at < i
}

func (p *planner) sources(i int, l *models.Layer) ([]int32, error) {
	if len(l.Inputs) == 0 {
		before := int32(0)
		if i > 0 {
			before = int32(p.inputs + i - 1)
		}
		return p.listed(append(p.list[:0], before)), nil
	}
	from := p.list[:0]
	for _, at := range l.Inputs {
		v, ok := p.input(i, at)
		if !ok {
			return nil, errAt(i, l, "takes the output of layer %d, which does not come before it", at+1)
		}
		from = append(from, v)
	}
	p.list = from
	return p.listed(from), nil
}

// add plans one layer.
func (p *planner) add(i int, l *models.Layer) error {
	from, err := p.sources(i, l)
	if err != nil {
		return err
	}
	batch := p.batch
	if l.Whole {
		batch = 1
	}
	n, ok := elements(l.Out, batch)
	if !ok {
		return errAt(i, l, "output of shape %v at batch size %d is out of range", l.Out, p.batch)
	}
	first := p.values[from[0]]
	size := p.element(l, from)
	split, part, err := p.splits(i, l, from)
	if err != nil {
		return err
	}
	if part {
		n = p.parted(n)
	}
	if !l.Whole {
		n = p.spread(n)
	}
	if n > allocator.MaxRequest/size {
		return errAt(i, l, "output of shape %v at batch size %d is out of range", l.Out, p.batch)
	}
	out := layer{kind: l.Type, inputs: from, value: int32(len(p.values)), out: n * size, block: l.Block, tied: none, attached: none}
	if out.holds, err = p.held(i, l); err != nil {
		return err
	}
	out.alias = l.Type == models.View || l.InPlace
	out.passes = passes(l.Type) && !(l.Type == models.View && n*size > first.bytes) // the gradient of an input broadcast over samples is summed up
	sixteen := l.Type == models.CrossEntropy && l.Bits == 16
	out.narrow, out.mixed = sixteen && !p.autocast, sixteen && p.autocast
	if l.Cached && p.train.Cache && !p.train.Checkpointing {
		p.cached = append(p.cached, out.value)
	}
	v := value{bytes: n * size, element: size, part: part}
	if out.alias {
		v.storage = first.storage
	} else {
		v.storage = p.store(v.bytes)
	}
	if err := p.addWeights(i, l, &out, split); err != nil {
		return err
	}
	for _, f := range from {
		v.grad = v.grad || p.values[f].grad
	}
	for _, w := range out.weights {
		v.grad = v.grad || p.weights[w].trainable
	}
	out.grad = v.grad
	p.values = append(p.values, v)
	if v.grad {
		out.kept = p.list[:0]
		p.keep(l, &out, v, n)
		p.list, out.kept = out.kept, p.listed(out.kept)
	}
	p.workspace(l, &out)
	if l.Type == models.Attention && p.unfused(l) {
		heads, rows, columns := p.grid(l, &out)
		out.scored = bounded(4 * heads * rows * columns * p.samples())
	}
	p.layers = append(p.layers, out)
	return nil
}
