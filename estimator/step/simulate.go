package step

import (
	"errors"
	"slices"

	"carma/configs/models"
	"carma/estimator/allocator"
)

// iterations is the number of training steps that are simulated. Reserved memory peaks in
// the second step, because the optimizer then has its states and the gradients of the first
// step still exist.
const iterations = 2

// Kind is the use of memory.
type Kind int

// Kinds of memory.
const (
	Weights Kind = iota
	Gradients
	States // states of the optimizer
	Activations
	Workspaces
	kinds
)

// Result is the memory of a training on one GPU, in bytes.
type Result struct {
	// Context is the memory of the process without tensors. Reserved is the peak of the
	// allocator's memory. Allocated is the peak of the tensors' memory.
	Context, Reserved, Allocated int64
	// Parts contains the parts of Allocated at its peak, by [Kind].
	Parts [kinds]int64
	// Flushes is the number of times that the allocator returned its cache to the driver
	// to avoid running out of memory.
	Flushes int
	// Paged is the size of the optimizer's states in unified memory. They use only free GPU
	// memory, and no other figure includes them.
	Paged int64
	// OutOfMemory is set if the training does not fit into the environment's limit. The
	// figures cover the steps before the failed allocation.
	OutOfMemory bool
}

// Total returns the process's memory as shown by a monitor, in bytes.
func (r Result) Total() int64 { return r.Context + r.Reserved }

// Simulate runs two training steps of c. An error names the layer that cannot be
// simulated.
func Simulate(c *models.Config, env *Environment) (Result, error) {
	p, err := Prepare(c)
	if err != nil {
		return Result{}, err
	}
	defer p.Done()
	return p.Simulate(env)
}

// Simulate runs two training steps in an environment. It is safe for concurrent
// use.
func (p *Plan) Simulate(env *Environment) (Result, error) {
	r := newRun(p, env)
	defer r.done()
	err := r.steps()
	stats := r.allocator.Stats()
	result := Result{
		Context: env.ContextFor(p.convs), Reserved: stats.PeakReserved, Allocated: stats.PeakAllocated,
		Parts: r.peak, Flushes: stats.Flushes, Paged: r.paged,
	}
	if errors.Is(err, allocator.ErrOutOfMemory) {
		result.OutOfMemory = true
		return result, nil
	}
	return result, err
}

// run is the state of a simulation.
type run struct {
	*Plan
	*usage
	env *Environment

	memory []chunk // by storage
	alive  []bool  // by storage: the forward pass may still use it
	saves  []int32 // by storage: the number of layers that keep it
	pinned []bool  // by storage: an autograd node keeps it
	nodes  []chunk // chunks that autograd nodes of the last pass keep
	extras []extras
	flows  flows

	weight, gradient, state []chunk
	partial                 []partial // by weight: the sum of its gradients so far, if layers share the weight
	held                    []chunk   // copies within the optimizer's step
	gathering               gathering
	zero                    zero
	live                    live
	flat                    chunk // gradients in 16 bits of a recurrent layer's weights
	back                    bool  // the backward pass has begun
	away                    bool  // kept tensors are offloaded to the host
	started                 bool  // the optimizer has its states
	paged                   int64 // bytes of paged states
}

// extras contains the tensors that a layer keeps in addition to storages: a copy of an
// overwritten input, 16-bit weights, masks, and the log-softmax.
type extras struct {
	chunks [mostExtras]chunk
	n      int
}

const mostExtras = 4

// piece is a gradient that several values may share.
type piece struct {
	chunk
	refs int32
}

// steps simulates the training.
func (r *run) steps() error {
	if r.products {
		if _, err := r.take(r.env.CuBLAS, Workspaces); err != nil {
			return err
		}
	}
	for _, w := range r.weights {
		if r.hostWeights() {
			break
		}
		c, err := r.take(w.bytes/r.weightShards(), Weights)
		if err != nil {
			return err
		}
		r.weight = append(r.weight, c)
	}
	if r.train.EMA {
		if err := r.follow(); err != nil {
			return err
		}
	}
	if r.train.Parallel == models.DDP {
		if err := r.buckets(); err != nil {
			return err
		}
	}
	if err := r.zero.lasting(); err != nil {
		return err
	}
	var script script
	for range iterations {
		for pass := range r.passes() {
			if err := r.pass(&script, pass == 0, pass == r.passes()-1); err != nil {
				return err
			}
		}
		if err := r.optimize(); err != nil {
			return err
		}
		if r.train.ZeroGrad == "end" {
			r.zeroGrad()
		}
	}
	return nil
}

// buckets allocates the memory in which DistributedDataParallel collects the
// gradients.
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

// gather allocates DataParallel's copy of all GPUs' outputs on the first GPU.
func (r *run) gather() (chunk, error) {
	if r.train.Parallel != models.DataParallel || r.train.GPUs < 2 || len(r.layers) == 0 {
		return chunk{}, nil
	}
	last := r.layers[len(r.layers)-1]
	return r.take(int64(r.train.GPUs)*r.values[last.inputs[0]].bytes, Activations)
}

// detach marks the loss, its inputs and the cache as held by the script.
func (r *run) detach() []chunk {
	if len(r.layers) == 0 {
		return nil
	}
	last := r.layers[len(r.layers)-1]
	var cs []chunk
	for _, v := range slices.Concat([]int32{last.value}, last.inputs, r.cached) {
		s := r.values[v].storage
		if r.memory[s].held {
			cs = append(cs, r.memory[s])
		}
		r.memory[s], r.alive[s] = chunk{}, false
	}
	r.giveBack(last.holds)
	return cs
}

// workspace allocates a kernel's workspace and frees it.
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
		return nil // the library uses an algorithm without a workspace instead
	}
	r.release(&c)
	return err
}

// drop frees a storage if neither the forward pass nor a gradient still needs it.
func (r *run) drop(s int32) {
	if !r.alive[s] && r.saves[s] == 0 && !r.unpin(s) {
		r.release(&r.memory[s])
	}
}
