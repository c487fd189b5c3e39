package step

import (
	"errors"

	"carma/configs/models"
	"carma/estimator/allocator"
)

// iterations simulated: reserved memory peaks in the second, when the gradients
// of the first are still there and the optimizer has its states.
const iterations = 2

// Kind is what memory is used for.
type Kind int

// Kinds of memory.
const (
	Weights Kind = iota
	Gradients
	States // of the optimizer
	Activations
	Workspaces
	kinds
)

// Result is the memory of a training on one GPU, in bytes.
type Result struct {
	// Context is the process without tensors; Reserved the peak of what the
	// allocator holds; Allocated the peak of what tensors take of it.
	Context, Reserved, Allocated int64
	// Parts make up Allocated at its peak, by [Kind].
	Parts [kinds]int64
	// Flushes counts how often the cache had to be given back to go on.
	Flushes int
	// OutOfMemory: the training does not fit into the environment's limit.
	OutOfMemory bool
}

// Total is what the monitor sees of the process.
func (r Result) Total() int64 { return r.Context + r.Reserved }

// Simulate runs two training steps of c. An error says which layer cannot be.
func Simulate(c *models.Config, env *Environment) (Result, error) {
	p, err := Prepare(c)
	if err != nil {
		return Result{}, err
	}
	return p.Simulate(env)
}

// Simulate runs two training steps in an environment. It may be called
// concurrently.
func (p *Plan) Simulate(env *Environment) (Result, error) {
	r := newRun(p, env)
	err := r.steps()
	stats := r.allocator.Stats()
	result := Result{
		Context: env.ContextFor(p.convs), Reserved: stats.PeakReserved, Allocated: stats.PeakAllocated,
		Parts: r.peak, Flushes: stats.Flushes,
	}
	if errors.Is(err, allocator.ErrOutOfMemory) {
		result.OutOfMemory = true
		return result, nil
	}
	return result, err
}

// chunk is an allocation and what it is for.
type chunk struct {
	block allocator.Block
	bytes int64
	kind  Kind
	held  bool
}

// run is the state of a simulation.
type run struct {
	*Plan
	env       *Environment
	allocator *allocator.Allocator
	now, peak [kinds]int64
	total     int64
	most      int64

	memory []chunk // by storage
	alive  []bool  // by storage: the forward pass may still use it
	saves  []int32 // by storage: layers that keep it
	extras [][]chunk
	grads  []int32 // by value: index into pieces, or -1
	pieces []piece
	spare  []int32

	weight, gradient, state []chunk
	started                 bool // the optimizer has its states
}

// piece is a gradient that several values may share.
type piece struct {
	chunk
	refs int32
}

func newRun(p *Plan, env *Environment) *run {
	options := env.Allocator
	if options.Limit == 0 && env.Capacity > 0 {
		options.Limit = max(env.Capacity-env.ContextFor(p.convs), 1)
	}
	r := &run{
		Plan: p, env: env, allocator: allocator.New(options),
		memory: make([]chunk, len(p.storages)), alive: make([]bool, len(p.storages)), saves: make([]int32, len(p.storages)),
		extras: make([][]chunk, len(p.layers)), grads: make([]int32, len(p.values)),
		gradient: make([]chunk, len(p.weights)),
	}
	for i := range r.grads {
		r.grads[i] = -1
	}
	r.allocator.Grow(2*len(p.layers) + 5*len(p.weights))
	r.weight = make([]chunk, 0, len(p.weights))
	r.state = make([]chunk, 0, 2*len(p.weights))
	r.pieces = make([]piece, 0, 16)
	return r
}

// steps runs the training.
func (r *run) steps() error {
	if r.products {
		if _, err := r.take(r.env.CuBLAS, Workspaces); err != nil {
			return err
		}
	}
	for _, w := range r.weights {
		c, err := r.take(w.bytes/r.weightShards(), Weights)
		if err != nil {
			return err
		}
		r.weight = append(r.weight, c)
	}
	if r.train.Parallel == models.DDP {
		if err := r.buckets(); err != nil {
			return err
		}
	}
	var batch, results []chunk
	for range iterations {
		next, err := r.batch()
		if err != nil {
			return err
		}
		r.releaseAll(batch) // the old batch lives until the new one is there
		batch = next
		r.zeroGrad()
		if err := r.forward(0, len(r.layers), true); err != nil {
			return err
		}
		r.releaseAll(results) // as do the old results
		gathered, err := r.gather()
		if err != nil {
			return err
		}
		if err := r.backward(); err != nil {
			return err
		}
		results = append(r.detach(), gathered)
		if err := r.optimize(); err != nil {
			return err
		}
	}
	return nil
}

// buckets are where DistributedDataParallel collects the gradients.
func (r *run) buckets() error {
	for _, w := range r.weights {
		if !w.trainable {
			continue
		}
		if _, err := r.take(w.bytes, Gradients); err != nil {
			return err
		}
	}
	return nil
}

// take allocates and counts.
func (r *run) take(bytes int64, k Kind) (chunk, error) {
	b, err := r.allocator.Alloc(bytes)
	if err != nil {
		return chunk{}, err
	}
	r.now[k] += bytes
	r.total += bytes
	if r.total > r.most {
		r.most, r.peak = r.total, r.now
	}
	return chunk{block: b, bytes: bytes, kind: k, held: true}, nil
}

func (r *run) release(c *chunk) {
	if !c.held {
		return
	}
	r.allocator.Free(c.block)
	r.now[c.kind] -= c.bytes
	r.total -= c.bytes
	*c = chunk{}
}

func (r *run) releaseAll(cs []chunk) {
	for i := range cs {
		r.release(&cs[i])
	}
}

// batch loads the model's inputs.
func (r *run) batch() ([]chunk, error) {
	var cs []chunk
	for v := range r.inputs {
		c, err := r.take(r.storages[r.values[v].storage].bytes, Activations)
		if err != nil {
			return nil, err
		}
		cs = append(cs, c)
	}
	return cs, nil
}

// gather is DataParallel's copy of all GPUs' outputs on the first.
func (r *run) gather() (chunk, error) {
	if r.train.Parallel != models.DataParallel || r.train.GPUs < 2 || len(r.layers) == 0 {
		return chunk{}, nil
	}
	last := r.layers[len(r.layers)-1]
	return r.take(int64(r.train.GPUs)*r.values[last.inputs[0]].bytes, Activations)
}

// detach hands the loss and what it is computed from over to the script.
func (r *run) detach() []chunk {
	if len(r.layers) == 0 {
		return nil
	}
	last := r.layers[len(r.layers)-1]
	var cs []chunk
	for _, v := range append([]int32{last.value}, last.inputs...) {
		s := r.values[v].storage
		cs = append(cs, r.memory[s])
		r.memory[s], r.alive[s] = chunk{}, false
	}
	return cs
}

// workspace is taken and given back around a kernel.
func (r *run) workspace(l *layer, factor float64) error {
	if l.scratch == 0 || len(l.inputs) == 0 {
		return nil
	}
	var weights int64
	if len(l.weights) > 0 {
		weights = r.weights[l.weights[0]].bytes
	}
	n := int64(factor*float64(r.values[l.inputs[0]].bytes+l.out) + r.env.Weight*float64(weights))
	if limit := r.env.WorkspaceLimit; limit > 0 {
		n = min(n, limit)
	}
	c, err := r.take(n, Workspaces)
	if errors.Is(err, allocator.ErrOutOfMemory) {
		return nil // the library falls back to an algorithm that needs none
	}
	r.release(&c)
	return err
}

// drop frees a storage that neither the forward pass nor a gradient needs.
func (r *run) drop(s int32) {
	if !r.alive[s] && r.saves[s] == 0 {
		r.release(&r.memory[s])
	}
}
