package mapper

import (
	"carma/internal/units"
	"carma/mapper/model"
)

// impossibleHost rejects a request that exceeds every machine.
func (s *State) impossibleHost(r model.Request) *model.ImpossibleError {
	var most units.Bytes
	cpus, known := int64(0), false
	for _, h := range s.HostList() {
		if h.Known {
			most, cpus, known = max(most, h.MaxMemory()), max(cpus, h.CPUs), true
		}
	}
	switch {
	case known && r.HostRequest() > most:
		return &model.ImpossibleError{Option: "host-mem", Reason: model.Reason{Code: model.ReasonTooMuchHost, Need: r.HostRequest(), Of: most}}
	case known && r.CPUs > cpus:
		return &model.ImpossibleError{Option: "cpus", Reason: model.Reason{Code: model.ReasonTooManyCPUs, More: int(r.CPUs), Limit: int(cpus)}}
	}
	return nil
}
