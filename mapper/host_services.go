package mapper

import (
	"cmp"
	"slices"

	"carma/mapper/model"
)

func (s *State) helpersBooked(ev model.HelpersBooked) {
	h := s.OpenHost(ev.Node)
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
	s.CloseHosts()
	s.MarkDirty()
}
