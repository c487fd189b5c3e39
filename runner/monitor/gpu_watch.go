package monitor

import (
	"context"
	"slices"
	"time"

	"carma/containers"
	"carma/internal/units"
	"carma/runner/gpu"
)

// MinReadings is the smallest number of consecutive readings without memory of a task
// that prove that the task never used its GPUs.
const MinReadings = 5

const (
	// cardFull is the share of a card's memory in use above which it counts as full.
	cardFull = 0.95
	// fullReadings is the number of last readings of which one must show a full card. The
	// very last reading may come after the memory was freed.
	fullReadings = 3
	// lastReadings is the number of readings whose times are kept. Readings after an
	// attempt's end say nothing about the attempt.
	lastReadings = 32
)

// gpuWatch records the presence of an attempt on its GPUs in readings.
type gpuWatch struct {
	gpus map[string]units.Bytes // their memory, by UUID
	// whole is set if the attempt was watched from its start.
	whole    bool
	readings int
	// blind is set if a reading was no evidence, because of a fault or of unknown
	// processes. seen is set if a reading showed the attempt.
	blind, seen bool
	// fullAt is the number of the last reading in which a GPU's memory was nearly all in
	// use, or 0.
	fullAt int
	fault  string // the last fault of one of its GPUs
	// first is the wall-clock time at which the first reading began.
	first time.Time
	// began are the wall-clock times at which the last readings began, in order.
	began []time.Time
	pids  map[string][]int // the attempt's processes that were seen, by GPU
}

// Watch begins to watch an attempt. whole is set if the attempt has just begun.
func (m *Monitor) Watch(key gpu.AttemptKey, gpus map[string]units.Bytes, whole bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.idle[key] = &gpuWatch{gpus: gpus, whole: whole, pids: map[string][]int{}}
}

// NeverTouched reports whether it was measured that an attempt had no memory on its GPUs
// all the time. There is no evidence for a GPU that has a fault or memory of unknown
// processes, or for an attempt that another daemon saw before.
func (m *Monitor) NeverTouched(key gpu.AttemptKey) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	w := m.idle[key]
	return w != nil && w.untouched() && w.readings >= MinReadings
}

// untouched reports whether all readings show nothing of the attempt.
func (w *gpuWatch) untouched() bool { return w.whole && !w.seen && !w.blind }

// lookFor processes a reading of all GPUs that began at an instant of the wall clock.
func (m *Monitor) lookFor(samples []gpu.Sample, began time.Time) {
	for key, w := range m.idle {
		w.readings++
		w.seen = w.seen || m.seen[key] != nil
		if w.first.IsZero() {
			w.first = began
		}
		if w.began = append(w.began, began); len(w.began) > lastReadings {
			w.began = w.began[1:]
		}
		for uuid, capacity := range w.gpus {
			i := slices.IndexFunc(samples, func(s gpu.Sample) bool { return s.UUID == uuid })
			if i < 0 {
				w.blind = true
				continue
			}
			w.look(key, &samples[i], capacity)
		}
	}
}

// look processes a reading of one of the attempt's GPUs.
func (w *gpuWatch) look(key gpu.AttemptKey, s *gpu.Sample, capacity units.Bytes) {
	if s.Fault != "" {
		w.fault, w.blind = s.Fault, true
	}
	if capacity > 0 && float64(s.Used) > cardFull*float64(capacity) {
		w.fullAt = w.readings
	}
	for _, p := range s.Processes {
		switch {
		case p.Task == 0:
			w.blind = true
		case gpu.AttemptKey{Task: p.Task, Attempt: p.Attempt} == key && p.PID > 0 && !slices.Contains(w.pids[s.UUID], p.PID):
			w.pids[s.UUID] = append(w.pids[s.UUID], p.PID)
		}
	}
}

// Measured returns the measurements of an attempt's GPU memory. erred is the time when
// its output named exhausted memory, ended its end. Each time is zero if it does not
// exist or is unknown.
func (m *Monitor) Measured(key gpu.AttemptKey, erred, ended time.Time) (mem containers.GPUMemory, fault string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.seen[key]; s != nil {
		mem.Seen, mem.Peak = true, int64(s.peak)
	}
	w := m.idle[key]
	if w == nil {
		return mem, ""
	}
	late := 0
	for _, began := range w.began {
		if !ended.IsZero() && !began.Before(ended) {
			late++
			continue
		}
		mem.Span = began.Sub(w.first)
		if !erred.IsZero() && began.After(erred) {
			mem.AtError = true
		}
	}
	mem.CardFull = w.fullAt > 0 && w.readings-late-w.fullAt < fullReadings
	if w.whole && (mem.Seen || !w.blind) {
		mem.Readings = w.readings - late
	}
	return mem, w.fault
}

// Accounted returns the highest memory use on one GPU that the driver itself has recorded
// for the processes of an attempt.
func (m *Monitor) Accounted(ctx context.Context, key gpu.AttemptKey) (peak units.Bytes, exact bool) {
	source, ok := m.source.(gpu.Accounting)
	if !ok {
		return 0, false
	}
	m.mu.Lock()
	pids := map[string][]int{}
	if w := m.idle[key]; w != nil && w.whole {
		for uuid, list := range w.pids {
			pids[uuid] = slices.Clone(list)
		}
	}
	m.mu.Unlock()
	for uuid, list := range pids {
		sum := units.Bytes(0)
		for _, pid := range list {
			used, ok := source.Accounted(ctx, uuid, pid)
			if !ok {
				return 0, false
			}
			sum += used
		}
		peak = max(peak, sum)
	}
	return peak, len(pids) > 0
}
