package monitor

import (
	"sync"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/gpu"
	"carma/runner/limits"
)

// softReservations holds the soft limits of GPU memory that the driver reserves for
// tasks. The driver may count reserved memory as used before any task uses it (its manual
// says that NVML's figures are adjusted; not yet measured). Reserved memory is not memory
// of other processes.
type softReservations struct {
	mu sync.Mutex
	of map[string]softReservation // by container
}

// softReservation is the memory reserved for one container.
type softReservation struct {
	key gpu.AttemptKey
	on  map[string]units.Bytes // by GPU
}

// SetSoftLimits stores the limits of an attempt's container, by GPU. The memory that they
// reserve is not memory of other processes.
func (m *Monitor) SetSoftLimits(id string, key gpu.AttemptKey, l map[string]limits.Limit) {
	on := map[string]units.Bytes{}
	for uuid, limit := range l {
		on[uuid] = units.Bytes(limit.Soft)
	}
	p := &m.soft
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of == nil {
		p.of = map[string]softReservation{}
	}
	p.of[id] = softReservation{key, on}
}

// ClearSoftLimits removes a container whose limits are cleared.
func (m *Monitor) ClearSoftLimits(id string) {
	p := &m.soft
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.of, id)
}

// unused returns the memory that is reserved on a GPU and not used by the tasks that it
// is reserved for.
func (p *softReservations) unused(s *gpu.Sample) (sum units.Bytes) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, to := range p.of {
		left := to.on[s.UUID]
		for _, process := range s.Processes {
			if (gpu.AttemptKey{Task: process.Task, Attempt: process.Attempt}) == to.key {
				left -= process.Used
			}
		}
		sum += max(0, left)
	}
	return sum
}

// foreign returns the used memory of a GPU that neither belongs to a task nor is reserved
// for one. The memory of other processes counts in any case.
func foreign(s *gpu.Sample, unused units.Bytes) units.Bytes {
	var ours, others units.Bytes
	for _, p := range s.Processes {
		if p.Task == model.TaskID(0) {
			others += p.Used
		} else {
			ours += p.Used
		}
	}
	return max(0, min(others, s.Used-ours), s.Used-ours-unused)
}
