package observe

import (
	"cmp"
	"slices"

	"carma/mapper/model"
)

// HostsFound replaces the inventory of machines.
func (ob *Observer) HostsFound(ev model.HostsFound) {
	for _, h := range ob.HostList() {
		h.HostInfo, h.Known, h.Available = model.HostInfo{Node: h.Node}, false, 0
	}
	for _, info := range ev.Hosts {
		info.Total, info.Memory, info.Most, info.Limit = info.Total.Clamp(), info.Memory.Clamp(), info.Most.Clamp(), info.Limit.Clamp()
		info.CPUs = max(0, min(info.CPUs, model.MostCPUs))
		h := ob.OpenHost(info.Node)
		h.HostInfo, h.Known = info, true
	}
	ob.CloseHosts()
	ob.MarkDirty()
}

// HelpersBooked allocates host memory and processors to the helpers of a suite, in place
// of their present allocation.
func (ob *Observer) HelpersBooked(ev model.HelpersBooked) {
	h := ob.OpenHost(ev.Node)
	memory, cpus := ev.Memory.Clamp(), max(0, min(ev.CPUs, model.MostCPUs))
	i, there := slices.BinarySearchFunc(h.Helpers, ev.Suite, func(a model.HelpersShare, name string) int { return cmp.Compare(a.Suite, name) })
	switch gone := memory == 0 && cpus == 0; {
	case there && gone:
		h.Helpers = slices.Delete(h.Helpers, i, i+1)
	case there:
		h.Helpers[i].Memory, h.Helpers[i].CPUs = memory, cpus
	case !gone:
		h.Helpers = slices.Insert(h.Helpers, i, model.HelpersShare{Suite: ev.Suite, Memory: memory, CPUs: cpus})
	}
	h.Settle()
	ob.CloseHosts()
	ob.MarkDirty()
}

// hostSampled stores the sampled memory use of the machines.
func (ob *Observer) hostSampled(samples []model.HostSample) {
	for i := range samples {
		in := &samples[i]
		h := ob.Host(in.Node)
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
		if h.FreeMemory() > free {
			ob.MarkDirty()
		}
		ob.preempter.GuardHost(h)
	}
}
