package runner

import (
	"context"
	"math"
	"sync"
	"time"

	"carma/mapper"
	"carma/runner/gpu"

	"github.com/rs/zerolog"
)

// monitor samples the GPUs and averages their activity over a window.
type monitor struct {
	source gpu.Source
	clock  *Clock
	every  time.Duration // daemon's time
	log    zerolog.Logger
	nudge  chan struct{}

	mu     sync.Mutex
	latest []gpu.Sample
	seen   map[attemptKey]*sighting
	window map[string][]reading
	failed bool
}

type attemptKey struct {
	task    mapper.TaskID
	attempt int
}

// sighting is what was seen of an attempt.
type sighting struct {
	peak  mapper.Bytes
	curve curve
}

type reading struct {
	at                  mapper.Instant
	smact, smocc, drama float64
}

const (
	// activityWindow is what activity is averaged over: 30 s, as long as a
	// GPU is closed after a launch.
	activityWindow = 30 * time.Second
	sampleLimit    = 5 * time.Second       // wall clock
	sampleLeast    = 50 * time.Millisecond // wall clock, between two samples
)

func newMonitor(s gpu.Source, c *Clock, every time.Duration, log zerolog.Logger) *monitor {
	return &monitor{
		source: s, clock: c, every: every, log: log, nudge: make(chan struct{}, 1),
		seen: map[attemptKey]*sighting{}, window: map[string][]reading{},
	}
}

func (m *monitor) wake() {
	select {
	case m.nudge <- struct{}{}:
	default:
	}
}

// run samples until ctx ends and gives report every sample that differs from
// the last one it took.
func (m *monitor) run(ctx context.Context, report func(mapper.Sampled) bool) {
	var last mapper.Sampled
	for {
		if ev, ok := m.sample(ctx); ok && !alike(last, ev) && report(ev) {
			last = ev
		}
		timer := time.NewTimer(max(m.clock.Wall(m.every), sampleLeast))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-m.nudge:
			timer.Stop()
		case <-timer.C:
		}
	}
}

func (m *monitor) sample(ctx context.Context) (mapper.Sampled, bool) {
	limited, cancel := context.WithTimeout(ctx, sampleLimit)
	samples, err := m.source.Sample(limited)
	cancel()
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil {
		if !m.failed && ctx.Err() == nil {
			m.log.Error().Err(err).Msg("the GPUs cannot be read; decisions use the last sample")
		}
		m.failed = true
		return mapper.Sampled{}, false
	}
	if m.failed {
		m.log.Info().Msg("the GPUs can be read again")
	}
	m.failed, m.latest = false, samples
	ev := mapper.Sampled{At: m.clock.Now()}
	for _, s := range samples {
		ev.GPUs = append(ev.GPUs, m.digest(ev.At, s))
	}
	m.watch(ev.At, samples)
	return ev, true
}

// watch keeps what the attempts use, each on the GPU where it uses most.
func (m *monitor) watch(now mapper.Instant, samples []gpu.Sample) {
	most := map[attemptKey]mapper.Bytes{}
	for _, s := range samples {
		here := map[attemptKey]mapper.Bytes{}
		for _, p := range s.Processes {
			if p.Task == 0 {
				continue
			}
			key := attemptKey{p.Task, p.Attempt}
			here[key] += p.Used
			if m.seen[key] == nil {
				m.seen[key] = &sighting{}
			}
			m.seen[key].peak = max(m.seen[key].peak, here[key], p.Peak)
		}
		for key, used := range here {
			most[key] = max(most[key], used)
		}
	}
	for key, used := range most {
		m.seen[key].curve.add(now, used)
	}
}

// digest turns one GPU's reading into what the mapper wants to know.
func (m *monitor) digest(now mapper.Instant, s gpu.Sample) mapper.GPUSample {
	out := mapper.GPUSample{ID: mapper.GPUID(s.UUID), Used: s.Used, Fault: s.Fault}
	var ours mapper.Bytes
	for _, p := range s.Processes {
		if p.Task == 0 {
			continue
		}
		ours += p.Used
		out.Tasks = addUse(out.Tasks, p.Task, p.Used)
	}
	// What no process of ours accounts for is somebody else's.
	out.Foreign = max(0, s.Used-ours)

	w := append(m.window[s.UUID], reading{now, s.SMACT, s.SMOCC, s.DRAMA})
	for len(w) > 1 && now.Sub(w[0].at) > activityWindow {
		w = w[1:]
	}
	m.window[s.UUID] = w
	for _, r := range w {
		out.SMACT += r.smact
		out.SMOCC += r.smocc
		out.DRAMA += r.drama
	}
	n := float64(len(w))
	out.SMACT, out.SMOCC, out.DRAMA = percent(out.SMACT/n), percent(out.SMOCC/n), percent(out.DRAMA/n)
	return out
}

// percent rounds to hundredths: finer differences are noise and would only
// fill the journal.
func percent(v float64) float64 { return math.Round(min(1, max(0, v))*100) / 100 }

func addUse(uses []mapper.TaskUse, id mapper.TaskID, used mapper.Bytes) []mapper.TaskUse {
	for i := range uses {
		if uses[i].Task == id {
			uses[i].Used += used
			return uses
		}
	}
	return append(uses, mapper.TaskUse{Task: id, Used: used})
}

// alike reports whether two samples tell the mapper the same.
func alike(a, b mapper.Sampled) bool {
	if len(a.GPUs) != len(b.GPUs) {
		return false
	}
	for i := range a.GPUs {
		x, y := &a.GPUs[i], &b.GPUs[i]
		if x.ID != y.ID || x.Used != y.Used || x.Foreign != y.Foreign || x.Fault != y.Fault ||
			x.SMACT != y.SMACT || x.SMOCC != y.SMOCC || x.DRAMA != y.DRAMA || len(x.Tasks) != len(y.Tasks) {
			return false
		}
		for j := range x.Tasks {
			if x.Tasks[j] != y.Tasks[j] {
				return false
			}
		}
	}
	return true
}

// sighting returns what was seen of an attempt so far.
func (m *monitor) sighting(task mapper.TaskID, attempt int) (peak mapper.Bytes, c *curve) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.seen[attemptKey{task, attempt}]; s != nil {
		return s.peak, s.curve.clone()
	}
	return 0, nil
}

// forget lets go of what was seen of an attempt.
func (m *monitor) forget(task mapper.TaskID, attempt int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.seen, attemptKey{task, attempt})
}

// power returns the last reading of a GPU's draw (W) and energy counter (J).
func (m *monitor) power(uuid string) (w, j float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.latest {
		if s.UUID == uuid {
			return s.PowerW, s.EnergyJ
		}
	}
	return 0, 0
}

// fullness is the share of a card's memory that was in use in the last sample.
func (m *monitor) fullness(uuid string, capacity mapper.Bytes) float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.latest {
		if s.UUID == uuid && capacity > 0 {
			return float64(s.Used) / float64(capacity)
		}
	}
	return 0
}
