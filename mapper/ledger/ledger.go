package ledger

import (
	"cmp"
	"slices"

	"carma/internal/units"
	"carma/mapper/model"
)

// RunsAlone reports whether a task gets GPUs exclusively.
func (in *inventory) RunsAlone(t *model.Task) bool {
	return t.NextExclusive || in.idleOnly && t.GPUs > 0
}

// Ledger holds the unfinished tasks, the GPUs and the machines, and what is allocated on
// them. It says what fits where; it does not choose.
type Ledger struct {
	agenda
	taskIndex
	inventory
	machines

	// Derived from the GPUs; no decision depends on when they were computed.
	ceilings     [2]ceiling    // of the memory that GPUs can give now, to a task on shared and on exclusive GPUs, or nil
	tested       units.Instant // when the next probe of an unhealthy GPU is due, which makes ceilings stale
	shrinkNext   units.Instant // no grant is checked before, or 0 if not known
	emptyCeiling ceiling       // of the memory that can be allocated on empty GPUs, or nil
}

// inventory holds the options and the GPUs, and answers what follows from these alone.
type inventory struct {
	opt      model.Options
	idleOnly bool // the policy places one task per GPU

	gpus []*model.GPU               // by index, then id: the order that decides
	byID map[model.GPUID]*model.GPU // look-up only
}

// machines holds the entries of the machines: host memory, processors, and what is
// allocated of them.
type machines struct {
	hosts []*model.Host // by node; machines with information
}

// CapacityChanged drops what was derived from the present capacity of the GPUs.
func (l *Ledger) CapacityChanged() { l.ceilings = [2]ceiling{} }

// DropDerived drops everything that was derived.
func (l *Ledger) DropDerived() {
	l.CapacityChanged()
	l.emptyCeiling, l.shrinkNext = nil, 0
}

// Configure replaces the options. idleOnly: the policy places one task per GPU.
func (l *Ledger) Configure(opt model.Options, idleOnly bool) {
	l.opt, l.idleOnly = opt.Clone(), idleOnly
	l.MarkDirty()
}

// AddGPU adds a GPU.
func (l *Ledger) AddGPU(g *model.GPU) {
	l.gpus, l.byID[g.ID] = append(l.gpus, g), g
	l.SortGPUs()
}

// RemoveGPU removes a GPU.
func (l *Ledger) RemoveGPU(g *model.GPU) {
	delete(l.byID, g.ID)
	l.gpus = slices.DeleteFunc(l.gpus, func(x *model.GPU) bool { return x == g })
	l.SortGPUs()
}

// SortGPUs sorts the GPUs after a change of their nodes or indices, and numbers them.
func (l *Ledger) SortGPUs() {
	slices.SortFunc(l.gpus, CompareGPUs)
	for i, g := range l.gpus {
		g.SetPos(i)
	}
	l.CapacityChanged()
	l.emptyCeiling = nil
}

// CheckGrantsBy requests a check of the grants at an instant or before.
func (l *Ledger) CheckGrantsBy(at units.Instant) { l.shrinkNext = min(l.shrinkNext, at) }

// GrantsDue reports whether a requested check of the grants is due. Then it forgets the
// request.
func (l *Ledger) GrantsDue() bool {
	if l.shrinkNext > l.now {
		return false
	}
	l.shrinkNext = units.Never
	return true
}

// New returns an empty ledger. idleOnly: the policy places one task per GPU.
func New(opt model.Options, idleOnly bool) *Ledger {
	return &Ledger{agenda: agenda{format: model.DecisionFormat}, taskIndex: newTaskIndex(), inventory: inventory{opt: opt.Clone(), idleOnly: idleOnly, gpus: []*model.GPU{}, byID: map[model.GPUID]*model.GPU{}}}
}

// Clone returns a copy that shares nothing that changes.
func (l *Ledger) Clone() *Ledger {
	c := *l
	c.out, c.timers, c.opt = nil, slices.Clone(l.timers), l.opt.Clone()
	c.DropDerived()
	c.gpus, c.byID = make([]*model.GPU, len(l.gpus)), make(map[model.GPUID]*model.GPU, len(l.gpus))
	for i, g := range l.gpus {
		c.gpus[i] = g.Clone()
		c.byID[g.ID] = c.gpus[i]
	}
	c.hosts = make([]*model.Host, len(l.hosts))
	for i, h := range l.hosts {
		c.hosts[i] = h.Clone()
	}
	c.taskIndex = l.taskIndex.Clone()
	return &c
}

// FreeMemory returns the memory that can still be allocated on a GPU, see [model.GPU.Available].
func (in *inventory) FreeMemory(g *model.GPU) units.Bytes { return g.Available(&in.opt) }

// MachineOf returns the GPUs of a GPU's machine.
func (in *inventory) MachineOf(g *model.GPU) []*model.GPU {
	from, to := g.Pos(), g.Pos()+1
	for from > 0 && in.gpus[from-1].Node == g.Node {
		from--
	}
	for to < len(in.gpus) && in.gpus[to].Node == g.Node {
		to++
	}
	return in.gpus[from:to]
}

// CompareGPUs is the order of the ledger: by machine, then index.
func CompareGPUs(a, b *model.GPU) int {
	return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Index, b.Index), cmp.Compare(a.ID, b.ID))
}

// GPUs returns copies of the ledger's entries in index order.
func (in *inventory) GPUs() []model.GPU {
	all := make([]model.GPU, len(in.gpus))
	for i, g := range in.gpus {
		all[i] = *g.Clone()
	}
	return all
}

// NumGPUs returns the number of GPUs in the ledger.
func (in *inventory) NumGPUs() int { return len(in.gpus) }

// Crowded returns copies of the GPUs with several tasks, in index order.
func (in *inventory) Crowded() []model.GPU {
	var all []model.GPU
	for _, g := range in.gpus {
		if len(g.Residents) > 1 {
			all = append(all, *g.Clone())
		}
	}
	return all
}

// Reserved returns the sum of the grants on a GPU, or 0 if the GPU is not known.
func (in *inventory) Reserved(id model.GPUID) units.Bytes {
	if g := in.byID[id]; g != nil {
		return g.Reserved
	}
	return 0
}

// Options returns the present options. The caller must not change them.
func (in *inventory) Options() *model.Options { return &in.opt }

// IdleOnly reports whether the policy places one task per GPU.
func (in *inventory) IdleOnly() bool { return in.idleOnly }

// GPUList returns the ledger's entries in order. The caller must not change the list.
func (in *inventory) GPUList() []*model.GPU { return in.gpus }

// GPU returns the ledger's entry of a GPU, or nil.
func (in *inventory) GPU(id model.GPUID) *model.GPU { return in.byID[id] }

// HostList returns the entries of the machines, by node. The caller must not change the
// list.
func (m *machines) HostList() []*model.Host { return m.hosts }

// NextGrantCheck returns the instant of the next check of the grants, or 0 if not known.
func (l *Ledger) NextGrantCheck() units.Instant { return l.shrinkNext }
