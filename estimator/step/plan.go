package step

import (
	"fmt"
	"math"
	"slices"

	"carma/configs/models"
	"carma/estimator/allocator"
)

// Plan is a configuration prepared for simulation: sizes in bytes for the
// batch of one GPU, storages instead of tensors.
type Plan struct {
	layers   []layer
	values   []value // of the model's inputs, then of the layers
	storages []storage
	inputs   int // values that are the model's inputs
	weights  []weight
	convs    bool // any convolution: its library gets loaded
	products bool // any product of matrices
	shards   int64
	train    models.Train
}

// Workspaces tells whether any layer takes one.
func (p *Plan) Workspaces() bool {
	return slices.ContainsFunc(p.layers, func(l layer) bool { return l.scratch > 0 })
}

// layer is one operation.
type layer struct {
	kind    string
	inputs  []int32 // values: storages of the inputs are values[...].storage
	value   int32
	out     int64 // bytes; 0 for a view
	alias   bool
	clone   int64 // bytes of a copy kept of what is overwritten
	kept    []int32
	extra   int64 // further bytes kept
	scratch int64 // workspace in each direction
	passes  bool  // the gradient of the output is the inputs'
	weights []int32
	cast    int64 // bytes of 16-bit copies of its weights
	grad    bool  // the output needs a gradient
	block   int
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
}

type weight struct {
	bytes     int64
	trainable bool
}

// shape errors name the layer.
func errAt(i int, l *models.Layer, format string, args ...any) error {
	name := l.Name
	if name == "" {
		name = l.Type
	}
	return fmt.Errorf("layer %d (%s): %s", i+1, name, fmt.Sprintf(format, args...))
}

// elements multiplies a shape with a batch, checking bounds.
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

// perGPU is the number of samples on one GPU.
func perGPU(t models.Train) int64 {
	b := int64(max(t.Batch, 1))
	if n := int64(t.GPUs); n > 1 && t.Parallel != "" && t.Parallel != models.NotParallel {
		return (b + n - 1) / n
	}
	return b
}

// planner builds a plan.
type planner struct {
	*Plan
	batch int64
}

// Prepare checks a configuration's sizes. An error names the layer.
func Prepare(c *models.Config) (*Plan, error) {
	p := &planner{Plan: &Plan{train: c.Train, inputs: len(c.Inputs), shards: 1}, batch: perGPU(c.Train)}
	if c.Train.Parallel == models.ZeRO1 || c.Train.Parallel == models.ZeRO2 || c.Train.Parallel == models.ZeRO3 {
		p.shards = int64(max(c.Train.GPUs, 1))
	}
	for _, in := range c.Inputs {
		n, ok := elements(in.Shape, p.batch)
		if !ok {
			return nil, fmt.Errorf("input of shape %v at batch size %d is out of range", in.Shape, p.batch)
		}
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
	p.layers = make([]layer, 0, len(c.Layers)+1)
	p.values = append(make([]value, 0, len(c.Layers)+len(p.values)+1), p.values...)
	p.storages = append(make([]storage, 0, len(c.Layers)+len(p.storages)+1), p.storages...)
	for i := range c.Layers {
		if err := p.add(i, &c.Layers[i]); err != nil {
			return nil, err
		}
	}
	p.loss()
	for i, l := range p.layers {
		p.used(l.value, i)
		for _, v := range l.inputs {
			p.used(v, i)
		}
	}
	return p.Plan, nil
}

// used notes that layer i uses a value.
func (p *planner) used(v int32, i int) {
	s := &p.storages[p.values[v].storage]
	s.lastUse = max(s.lastUse, int32(i))
}

// float is the size of a floating-point number of the weights.
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

// input resolves an index of [models.Layer.Inputs] to a value.
func (p *planner) input(i, at int) (int32, bool) {
	if at < 0 {
		v := -at - 1
		return int32(v), v < p.inputs
	}
	return int32(p.inputs + at), at < i
}

func (p *planner) sources(i int, l *models.Layer) ([]int32, error) {
	if len(l.Inputs) == 0 {
		if i == 0 {
			return []int32{0}, nil
		}
		return []int32{int32(p.inputs + i - 1)}, nil
	}
	var from []int32
	for _, at := range l.Inputs {
		v, ok := p.input(i, at)
		if !ok {
			return nil, errAt(i, l, "takes the output of layer %d, which does not come before it", at+1)
		}
		from = append(from, v)
	}
	return from, nil
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
	if n > allocator.MaxRequest/size {
		return errAt(i, l, "output of shape %v at batch size %d is out of range", l.Out, p.batch)
	}
	out := layer{kind: l.Type, inputs: from, value: int32(len(p.values)), out: n * size, block: l.Block}
	out.alias = l.Type == models.View || l.InPlace
	out.passes = passes(l.Type)
	v := value{bytes: n * size, element: size}
	if out.alias {
		v.storage = first.storage
	} else {
		v.storage = p.store(v.bytes)
	}
	if err := p.addWeights(i, l, &out); err != nil {
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
		p.keep(l, &out, v, n)
	}
	p.workspace(l, &out)
	p.layers = append(p.layers, out)
	return nil
}

// passes: the gradients of the inputs are the output's, or views of it.
func passes(kind string) bool {
	return kind == models.Add || kind == models.Concat || kind == models.View
}

// element is the size of an element of the output.
func (p *planner) element(l *models.Layer, from []int32) int64 {
	if l.Type == models.Embedding || l.Type == models.EmbeddingBag {
		return p.float()
	}
	largest := int64(0)
	for _, f := range from {
		largest = max(largest, p.values[f].element)
	}
	if p.train.Precision != models.AMP {
		return min(max(largest, 2), p.float())
	}
	switch l.Type {
	case models.Convolution, models.ConvTranspose, models.Linear, models.MatMul, models.Attention, models.Recurrent:
		return 2
	case models.LayerNorm, models.RMSNorm, models.GroupNorm, models.Softmax, models.LogSoftmax, models.CrossEntropy, models.Loss:
		return 4
	}
	return min(max(largest, 2), 4)
}

func (p *planner) addWeights(i int, l *models.Layer, out *layer) error {
	if l.Tied {
		return nil
	}
	for _, n := range l.Params {
		if n < 0 || n > allocator.MaxRequest/16 {
			return errAt(i, l, "%d parameters are out of range", n)
		}
		out.weights = append(out.weights, int32(len(p.weights)))
		p.weights = append(p.weights, weight{bytes: n * p.float(), trainable: !l.Frozen && p.train.Optimizer != models.NoOptimizer})
		if p.train.Precision == models.AMP && (l.Type == models.Linear || l.Type == models.Convolution) {
			out.cast += 2 * n
		}
	}
	return nil
}

// keep fills in what the layer keeps for its gradient.
func (p *planner) keep(l *models.Layer, out *layer, v value, n int64) {
	if k := l.Keeps; k != nil {
		for _, at := range k.Inputs {
			if at >= 0 && at < len(out.inputs) {
				out.kept = append(out.kept, p.values[out.inputs[at]].storage)
			}
		}
		if k.Output {
			out.kept = append(out.kept, v.storage)
		}
		out.extra = bounded(float64(k.Bytes)*float64(p.batch) + float64(k.Whole))
		return
	}
	k := keepsOf(l)
	if k.input && needsInput(l) {
		for _, f := range out.inputs {
			out.kept = append(out.kept, p.values[f].storage)
		}
	}
	if k.output {
		out.kept = append(out.kept, v.storage)
	}
	if k.clone {
		out.clone = v.bytes
	}
	out.extra = bounded(float64(k.perOut) * float64(n))
	if l.Type == models.Attention {
		out.extra = bounded(p.scores(l, out))
	}
}

// scores are the bytes attention keeps besides its operands: a sum for every
// row when fused, else the matrices of scores before and after the dropout.
func (p *planner) scores(l *models.Layer, out *layer) float64 {
	heads := float64(max(l.Heads, 1))
	rows, columns := float64(1), float64(1)
	if len(l.Out) >= 2 {
		rows = float64(l.Out[len(l.Out)-2])
	}
	columns = rows
	if !l.Unfused {
		return 4 * heads * rows * float64(p.batch)
	}
	return 4 * heads * rows * columns * float64(p.batch)
}

func bounded(x float64) int64 {
	return int64(min(max(x, 0), math.MaxInt64/1024))
}

// workspace notes what the layer's kernels need.
func (p *planner) workspace(l *models.Layer, out *layer) {
	switch l.Type {
	case models.Convolution, models.ConvTranspose:
		p.convs = true
		area := int64(1)
		for _, k := range l.Kernel {
			area *= max(k, 1)
		}
		if area > 1 && l.Groups <= 1 {
			out.scratch = 1 // dense: sized by the environment
		}
	case models.Linear, models.MatMul, models.Attention, models.Recurrent:
		p.products = true
	}
}

// loss appends the cross-entropy where the configuration ends without a loss.
func (p *planner) loss() {
	if len(p.layers) == 0 {
		return
	}
	last := &p.layers[len(p.layers)-1]
	if last.kind == models.CrossEntropy || last.kind == models.Loss {
		return
	}
	v := value{storage: p.store(4), bytes: 4, element: 4, grad: last.grad}
	p.layers = append(p.layers, layer{kind: models.CrossEntropy, inputs: []int32{last.value}, value: int32(len(p.values)), out: 4, grad: last.grad})
	p.values = append(p.values, v)
}
