package ledger

import (
	"cmp"
	"slices"

	"carma/internal/units"
	"carma/mapper/model"
)

// Host returns the entry of a machine, or nil.
func (m *machines) Host(node string) *model.Host {
	for _, h := range m.hosts {
		if h.Node == node {
			return h
		}
	}
	return nil
}

// OpenHost returns the entry of a machine, and adds it if there is none.
func (m *machines) OpenHost(node string) *model.Host {
	if h := m.Host(node); h != nil {
		return h
	}
	h := &model.Host{HostInfo: model.HostInfo{Node: node}}
	m.hosts = append(m.hosts, h)
	slices.SortFunc(m.hosts, func(a, b *model.Host) int { return cmp.Compare(a.Node, b.Node) })
	return h
}

// CloseHosts drops the entries without content.
func (m *machines) CloseHosts() {
	m.hosts = slices.DeleteFunc(m.hosts, func(h *model.Host) bool { return !h.Known && len(h.Residents)+len(h.Helpers) == 0 })
}

// AllocateHost adds an attempt to the entry of its machine; ReleaseHost removes it.
func (m *machines) AllocateHost(t *model.Task, share model.HostShare) {
	if share == (model.HostShare{}) && t.GPUs > 0 {
		return
	}
	h := m.OpenHost(share.Node)
	h.Residents = append(h.Residents, model.HostResident{Task: t.ID, Memory: share.Memory, CPUs: share.CPUs})
	h.Settle()
}

// ReleaseHost ends an attempt's allocation on its machine.
func (m *machines) ReleaseHost(t *model.Task, a *model.Attempt) {
	h := m.Host(a.Host.Node)
	if h == nil {
		return
	}
	if r := h.Resident(t.ID); r != nil {
		a.HostPeak = max(a.HostPeak, r.Peak)
		h.Residents = slices.DeleteFunc(h.Residents, func(r model.HostResident) bool { return r.Task == t.ID })
		h.Settle()
		m.CloseHosts()
	}
}

// WithoutGPU returns the placed or suspended tasks without a GPU, in order of machine.
func (l *Ledger) WithoutGPU() (all []*model.Task) {
	for _, h := range l.hosts {
		for i := range h.Residents {
			if t := l.tasks[h.Residents[i].Task]; t.GPUs == 0 {
				all = append(all, t)
			}
		}
	}
	return all
}

// Hosts returns copies of the entries of the machines, in order.
func (m *machines) Hosts() []model.Host {
	all := make([]model.Host, len(m.hosts))
	for i, h := range m.hosts {
		all[i] = *h.Clone()
	}
	return all
}

// Tasks without a request share all of a machine's memory except one part in
// defaultParts. That part is for tasks that want more, and for tasks without a GPU.
// LeastHost is the least that one task gets, except on machines with less than hostParts
// times LeastHost. bareHost is the most for a task without a GPU.
const (
	defaultParts = 4
	LeastHost    = units.GiB
	hostParts    = 16
	bareHost     = 8 * units.GiB
	// bareCPUs and leastWeight are thousandths of a processor.
	bareCPUs    = 1000
	leastWeight = 100
)

// HostShareOf returns the allocation of a task on a machine if it were launched now: its
// request, else the use by earlier runs of its kind, else the part that goes with its
// GPUs. A task without a memory request may use more than its allocation, up to the
// unallocated memory.
func (in *inventory) HostShareOf(t *model.Task, h *model.Host) model.HostShare {
	share := model.HostShare{Node: h.Node}
	if !h.Known {
		return share
	}
	part, gpus := in.partOf(t, h.Node)
	left := max(0, h.Memory-h.HelpersMemory())
	share.Limit = t.HostMem
	switch {
	case t.HostReserve > 0 && t.HostOOMs == 0:
		share.Memory = t.HostReserve
	case t.HostReserve > 0:
		share.Memory = max(t.HostReserve, t.NextHostGrant)
	case t.HostMem > 0:
		share.Memory = t.HostMem
	case t.NextHostGrant > 0:
		share.Memory = min(t.NextHostGrant, h.MaxMemory())
	case gpus == 0:
		share.Memory = min(h.Memory/hostParts, bareHost, h.MaxMemory())
	default:
		all := left - left/defaultParts
		share.Memory = min(max(all.Scale(part/float64(gpus)), min(LeastHost, h.Memory/hostParts)), h.MaxMemory())
	}
	if share.Limit == 0 {
		share.Limit = min(max(share.Memory, h.Memory-h.TakenMemory()), h.MaxMemory())
		if h.Limit > 0 {
			share.Limit = min(share.Limit, max(h.Limit, share.Memory))
		}
	}
	switch {
	case t.CPUs > 0:
		share.CPUs, share.Weight = t.CPUs, t.CPUs
	case t.GPUs == 0:
		share.CPUs, share.Weight = min(bareCPUs, h.CPUs), bareCPUs
	default:
		share.Weight = max(leastWeight, int64(float64(h.CPUs)*part/float64(max(gpus, 1))))
	}
	return share
}

// partOf returns how many of a machine's GPUs a task gets, as a number with a fraction,
// and how many there are. Both are 0 if it gets none.
func (in *inventory) partOf(t *model.Task, node string) (part float64, gpus int) {
	if t.GPUs == 0 {
		return 0, 0
	}
	var first *model.GPU
	for _, g := range in.gpus {
		if g.Node == node {
			if gpus++; first == nil {
				first = g
			}
		}
	}
	if first == nil {
		return 0, 0
	}
	part = 1
	if !in.RunsAlone(t) && first.Capacity > 0 {
		part = min(1, float64(t.NextGrant)/float64(first.Capacity))
	}
	return part * float64(t.GPUs), gpus
}

// hostCanFit reports whether a task would fit if nothing else ran. A suspended task
// already has its allocation.
func (l *Ledger) hostCanFit(t *model.Task) bool {
	if len(l.hosts) == 0 || t.Phase == model.Suspended || t.HostRequest() == 0 && t.CPUs == 0 {
		return true
	}
	able := func(h *model.Host) bool { return !h.Known || t.HostRequest() <= h.MaxMemory() && t.CPUs <= h.CPUs }
	if t.GPUs > 0 {
		return slices.ContainsFunc(l.gpus, func(g *model.GPU) bool { h := l.Host(g.Node); return h == nil || able(h) })
	}
	known := slices.ContainsFunc(l.hosts, func(h *model.Host) bool { return h.Known })
	return slices.ContainsFunc(l.hosts, func(h *model.Host) bool { return h.Known == known && able(h) })
}
