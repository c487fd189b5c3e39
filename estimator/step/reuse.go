package step

import (
	"slices"
	"sync"

	"carma/configs/models"
	"carma/estimator/allocator"
)

// spares contains finished runs for reuse. A large network's run takes megabytes, which
// would be most of an estimate's garbage.
var spares = sync.Pool{New: func() any { return &run{usage: &usage{allocator: allocator.New(allocator.Options{})}} }}

// sparePlans contains unused plans, for the same reason.
var sparePlans = sync.Pool{New: func() any { return new(Plan) }}

// newPlan returns an empty plan with room for the layers of c.
func newPlan(c *models.Config) *Plan {
	old := sparePlans.Get().(*Plan)
	return &Plan{
		train: c.Train, inputs: len(c.Inputs), shards: 1,
		layers: slices.Grow(old.layers[:0], len(c.Layers)+1), values: slices.Grow(old.values[:0], len(c.Layers)+len(c.Inputs)+2),
		storages: slices.Grow(old.storages[:0], len(c.Layers)+len(c.Inputs)+2), weights: slices.Grow(old.weights[:0], len(c.Layers)), lists: old.lists[:0],
	}
}

// Done releases the memory of the plan for reuse. The plan may not be used afterwards.
func (p *Plan) Done() {
	p.train, p.cached = models.Train{}, nil
	clear(p.layers) // which reference texts and lists
	sparePlans.Put(p)
}

func newRun(p *Plan, env *Environment) *run {
	options := env.Allocator
	if options.Limit == 0 && env.Capacity > 0 {
		options.Limit = max(env.Capacity-env.ContextFor(p.convs), 1)
	}
	old := spares.Get().(*run)
	use := &usage{allocator: old.allocator}
	r := &run{
		Plan: p, env: env, usage: use,
		memory: cleared(old.memory, len(p.storages)), alive: cleared(old.alive, len(p.storages)), saves: cleared(old.saves, len(p.storages)), pinned: cleared(old.pinned, len(p.storages)), nodes: old.nodes[:0],
		extras: cleared(old.extras, len(p.layers)), gradient: cleared(old.gradient, len(p.weights)),
		partial: cleared(old.partial, len(p.weights)),
		weight:  old.weight[:0], state: old.state[:0], held: old.held[:0],
		flows:     flows{plan: p, use: use, grads: cleared(old.flows.grads, len(p.values)), pieces: old.flows.pieces[:0], spare: old.flows.spare[:0]},
		gathering: gathering{plan: p, use: use}, zero: zero{plan: p, use: use}, live: live{plan: p, use: use},
	}
	r.away = p.train.Offloads(models.OffloadActivations)
	for i := range r.flows.grads {
		r.flows.grads[i] = -1
	}
	r.allocator.Reset(options)
	r.allocator.Grow(2*len(p.layers) + 5*len(p.weights))
	return r
}

// done releases the memory of the run for reuse.
func (r *run) done() {
	r.Plan, r.env = nil, nil
	r.flows.plan, r.gathering, r.zero, r.live = nil, gathering{}, zero{}, live{}
	spares.Put(r)
}

// cleared returns a slice of n zero values, in the memory of old if that is large enough.
func cleared[T any](old []T, n int) []T {
	if cap(old) < n {
		return make([]T, n)
	}
	old = old[:n]
	clear(old)
	return old
}

// listed copies a list into memory that all lists of the plan share.
func (p *planner) listed(list []int32) []int32 {
	if len(list) == 0 {
		return nil
	}
	if cap(p.lists)-len(p.lists) < len(list) {
		p.lists = make([]int32, 0, max(4096, len(list)))
	}
	start := len(p.lists)
	p.lists = append(p.lists, list...)
	return p.lists[start:len(p.lists):len(p.lists)]
}
