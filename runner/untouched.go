package runner

import (
	"slices"

	"carma/mapper"
	"carma/runner/gpu"
)

// lookedLeast is how many readings in a row must show that a task has nothing on its
// GPUs to say that it never touched them.
const lookedLeast = 5

// untouched counts the readings that show nothing of an attempt on any of its GPUs; it
// ends with the first that shows something, or that does not tell.
type untouched struct {
	gpus  []string
	looks int
	ended bool
}

// expect begins to look whether an attempt touches its GPUs.
func (m *monitor) expect(key attemptKey, gpus []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.idle[key] = &untouched{gpus: gpus}
}

// neverTouched reports whether it was measured that an attempt had no memory on its
// GPUs all the time. A GPU that has a fault or memory of processes that nobody knows
// does not tell, and so does an attempt that another daemon saw before.
func (m *monitor) neverTouched(key attemptKey) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	u := m.idle[key]
	return u != nil && !u.ended && u.looks >= lookedLeast
}

// lookFor follows a reading of all GPUs.
func (m *monitor) lookFor(samples []gpu.Sample) {
	for key, u := range m.idle {
		if m.seen[key] != nil {
			u.ended = true
		}
		for _, uuid := range u.gpus {
			i := slices.IndexFunc(samples, func(s gpu.Sample) bool { return s.UUID == uuid })
			if u.ended = u.ended || i < 0 || samples[i].Fault != "" || slices.ContainsFunc(samples[i].Processes, func(p gpu.Process) bool { return p.Task == 0 }); u.ended {
				break
			}
		}
		u.looks++
	}
}

// withUntouched returns the record with an attempt that never touched its GPUs, if that
// was measured.
func (r *Record) withUntouched(attempt int, measured bool) *Record {
	if !measured {
		return r
	}
	n := *r
	n.Untouched = append(slices.Clone(r.Untouched), attempt)
	return &n
}

// measured reports whether the memory that an attempt used is known, be it none.
func (r *Record) measured(a *mapper.Attempt) bool {
	return a.Peak > 0 || slices.Contains(r.Untouched, a.N)
}
