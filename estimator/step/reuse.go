package step

import (
	"slices"
	"sync"

	"carma/configs/models"
	"carma/estimator/allocator"
)

// spares are runs that ended. Their memory is used again: a large network's takes
// megabytes, which would be most of what an estimate leaves to the garbage collector.
var spares = sync.Pool{New: func() any { return &run{allocator: allocator.New(allocator.Options{})} }}

// sparePlans are plans that nobody needs any more, for the same reason.
var sparePlans = sync.Pool{New: func() any { return new(Plan) }}

// newPlan is a plan of nothing, with room for the layers of c.
func newPlan(c *models.Config) *Plan {
	old := sparePlans.Get().(*Plan)
	return &Plan{
		train: c.Train, inputs: len(c.Inputs), shards: 1,
		layers: slices.Grow(old.layers[:0], len(c.Layers)+1), values: slices.Grow(old.values[:0], len(c.Layers)+len(c.Inputs)+2),
		storages: slices.Grow(old.storages[:0], len(c.Layers)+len(c.Inputs)+2), weights: slices.Grow(old.weights[:0], len(c.Layers)), lists: old.lists[:0],
	}
}

// Done gives the memory of the plan to later ones. It may not be used any more.
func (p *Plan) Done() {
	p.train, p.cached = models.Train{}, nil
	clear(p.layers) // which hold on to texts and lists
	sparePlans.Put(p)
}

func newRun(p *Plan, env *Environment) *run {
	options := env.Allocator
	if options.Limit == 0 && env.Capacity > 0 {
		options.Limit = max(env.Capacity-env.ContextFor(p.convs), 1)
	}
	old := spares.Get().(*run)
	r := &run{
		Plan: p, env: env, allocator: old.allocator,
		memory: cleared(old.memory, len(p.storages)), alive: cleared(old.alive, len(p.storages)), saves: cleared(old.saves, len(p.storages)), pinned: cleared(old.pinned, len(p.storages)), nodes: old.nodes[:0],
		extras: cleared(old.extras, len(p.layers)), grads: cleared(old.grads, len(p.values)), gradient: cleared(old.gradient, len(p.weights)),
		partial: cleared(old.partial, len(p.weights)),
		weight:  old.weight[:0], state: old.state[:0], held: old.held[:0], pieces: old.pieces[:0], spare: old.spare[:0],
	}
	r.away = p.train.Offloads(models.OffloadActivations)
	for i := range r.grads {
		r.grads[i] = -1
	}
	r.allocator.Reset(options)
	r.allocator.Grow(2*len(p.layers) + 5*len(p.weights))
	return r
}

// done gives the memory of the run to later ones.
func (r *run) done() {
	r.Plan, r.env = nil, nil
	spares.Put(r)
}

// cleared is a slice of n zero values, in the memory of old if that is large enough.
func cleared[T any](old []T, n int) []T {
	if cap(old) < n {
		return make([]T, n)
	}
	old = old[:n]
	clear(old)
	return old
}
