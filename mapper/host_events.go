package mapper

import (
	"cmp"
	"slices"

	"carma/mapper/model"
)

// host returns the entry of a machine, or nil.
func (l *ledger) host(node string) *model.Host {
	for _, h := range l.hosts {
		if h.Node == node {
			return h
		}
	}
	return nil
}

// openHost returns the entry of a machine, and adds it if there is none.
func (l *ledger) openHost(node string) *model.Host {
	if h := l.host(node); h != nil {
		return h
	}
	h := &model.Host{HostInfo: model.HostInfo{Node: node}}
	l.hosts = append(l.hosts, h)
	slices.SortFunc(l.hosts, func(a, b *model.Host) int { return cmp.Compare(a.Node, b.Node) })
	return h
}

// closeHosts drops the entries without content.
func (l *ledger) closeHosts() {
	l.hosts = slices.DeleteFunc(l.hosts, func(h *model.Host) bool { return !h.Known && len(h.Residents)+len(h.Helpers) == 0 })
}

func (s *State) hostsFound(ev model.HostsFound) {
	for _, h := range s.hosts {
		h.HostInfo, h.Known, h.Available = model.HostInfo{Node: h.Node}, false, 0
	}
	for _, info := range ev.Hosts {
		info.Total, info.Memory, info.Most, info.Limit = info.Total.Clamp(), info.Memory.Clamp(), info.Most.Clamp(), info.Limit.Clamp()
		info.CPUs = max(0, min(info.CPUs, model.MostCPUs))
		h := s.openHost(info.Node)
		h.HostInfo, h.Known = info, true
	}
	s.closeHosts()
	s.dirty = true
}

// hostSampled stores the sampled memory use of the machines.
func (pre *preempter) hostSampled(samples []model.HostSample) {
	for i := range samples {
		in := &samples[i]
		h := pre.host(in.Node)
		if h == nil {
			continue
		}
		free := h.FreeMemory()
		h.Available = in.Available.Clamp()
		for j := range h.Residents {
			h.Residents[j].Used = 0
		}
		for _, u := range in.Tasks {
			if r := h.Resident(u.Task); r != nil {
				r.Used = u.Used.Clamp()
				r.Peak = max(r.Peak, r.Used)
			}
		}
		for j := range h.Helpers {
			h.Helpers[j].Used = 0
		}
		for _, u := range in.Helpers {
			if j := slices.IndexFunc(h.Helpers, func(o model.HelpersShare) bool { return o.Suite == u.Suite }); j >= 0 {
				h.Helpers[j].Used = u.Used.Clamp()
			}
		}
		h.Settle()
		pre.dirty = pre.dirty || h.FreeMemory() > free
		pre.guardHost(h)
	}
}

// shareAt returns the allocation of a launch on its machine.
func (q *schedulingQueue) shareAt(t *model.Task, gpus []*model.GPU) model.HostShare {
	if t.GPUs == 0 {
		h, _ := q.hostFor(t)
		return q.hostShare(t, h)
	}
	h := q.host(gpus[0].Node)
	if h == nil || !h.Known {
		return model.HostShare{}
	}
	return q.hostShare(t, h)
}

// settleIn adds an attempt to the entry of its machine; moveOut removes it.
func (l *ledger) settleIn(t *model.Task, share model.HostShare) {
	if share == (model.HostShare{}) && t.GPUs > 0 {
		return
	}
	h := l.openHost(share.Node)
	h.Residents = append(h.Residents, model.HostResident{Task: t.ID, Memory: share.Memory, CPUs: share.CPUs})
	h.Settle()
}

func (l *ledger) moveOut(t *model.Task, a *model.Attempt) {
	h := l.host(a.Host.Node)
	if h == nil {
		return
	}
	if r := h.Resident(t.ID); r != nil {
		a.HostPeak = max(a.HostPeak, r.Peak)
		h.Residents = slices.DeleteFunc(h.Residents, func(r model.HostResident) bool { return r.Task == t.ID })
		h.Settle()
		l.closeHosts()
	}
}

// bare returns the placed or suspended tasks without a GPU, in order of machine.
func (l *ledger) bare() (all []*model.Task) {
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
func (l *ledger) Hosts() []model.Host {
	all := make([]model.Host, len(l.hosts))
	for i, h := range l.hosts {
		all[i] = *h.Clone()
	}
	return all
}
