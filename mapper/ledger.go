package mapper

import (
	"slices"

	"carma/internal/units"
	"carma/mapper/model"
)

// agenda holds the present instant, the decisions of the present step, and the timers.
type agenda struct {
	now      units.Instant
	format   int                // of the decisions, see DecisionFormat
	out      []model.Decision   // of the present step
	recorded *recordedDecisions // the recorded decisions on the event in Follow, or nil in Step
	timers   timers
	wake     units.Instant // the instant of the pending SetTimer, or 0
	dirty    bool          // a waiting task may fit now
}

// ledger holds the unfinished tasks, the GPUs and the machines, and what is allocated on
// them. It says what fits where; it does not choose.
type ledger struct {
	agenda
	taskIndex
	opt      model.Options
	idleOnly bool // the policy places one task per GPU

	gpus   []*model.GPU               // by index, then id: the order that decides
	byID   map[model.GPUID]*model.GPU // look-up only
	hosts  []*model.Host              // by node; machines with information
	byUser bool                       // a GPU has SharingUsers; follows from gpus
	ring   int                        // round-robin's position in gpus

	// Derived from the GPUs; no decision depends on when they were computed.
	ceilings     [2]ceiling    // of the memory that GPUs can give now, to a task on shared and on exclusive GPUs, or nil
	tested       units.Instant // when the next probe of an unhealthy GPU is due, which makes ceilings stale
	shrinkNext   units.Instant // no grant is checked before, or 0 if not known
	emptyCeiling ceiling       // of the memory that can be allocated on empty GPUs, or nil
}

// capacityChanged drops what was derived from the present capacity of the GPUs.
func (l *ledger) capacityChanged() { l.ceilings = [2]ceiling{} }

// inventoryChanged drops what was derived from the list of GPUs, as well.
func (l *ledger) inventoryChanged() {
	l.capacityChanged()
	l.emptyCeiling = nil
}

// clone returns a copy that shares nothing that changes.
func (l *ledger) clone() *ledger {
	c := *l
	c.out, c.timers, c.opt = nil, slices.Clone(l.timers), l.opt.Clone()
	c.inventoryChanged()
	c.shrinkNext = 0
	c.gpus, c.byID = make([]*model.GPU, len(l.gpus)), make(map[model.GPUID]*model.GPU, len(l.gpus))
	for i, g := range l.gpus {
		c.gpus[i] = g.Clone()
		c.byID[g.ID] = c.gpus[i]
	}
	c.hosts = make([]*model.Host, len(l.hosts))
	for i, h := range l.hosts {
		c.hosts[i] = h.Clone()
	}
	c.taskIndex = l.taskIndex.clone()
	return &c
}

// free returns the memory that can still be allocated on a GPU, see [model.GPU.Available].
func (l *ledger) free(g *model.GPU) units.Bytes { return g.Available(&l.opt) }
