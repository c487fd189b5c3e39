package mapper

import (
	"slices"

	"carma/mapper/model"
)

func (s *State) hostsFound(ev model.HostsFound) {
	for _, h := range s.HostList() {
		h.HostInfo, h.Known, h.Available = model.HostInfo{Node: h.Node}, false, 0
	}
	for _, info := range ev.Hosts {
		info.Total, info.Memory, info.Most, info.Limit = info.Total.Clamp(), info.Memory.Clamp(), info.Most.Clamp(), info.Limit.Clamp()
		info.CPUs = max(0, min(info.CPUs, model.MostCPUs))
		h := s.OpenHost(info.Node)
		h.HostInfo, h.Known = info, true
	}
	s.CloseHosts()
	s.MarkDirty()
}

// hostSampled stores the sampled memory use of the machines.
func (s *State) hostSampled(samples []model.HostSample) {
	for i := range samples {
		in := &samples[i]
		h := s.Host(in.Node)
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
			s.MarkDirty()
		}
		s.preempter.GuardHost(h)
	}
}
