package runner

import (
	"context"
	"maps"
	"math"
	"sync"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/clock"
	"carma/runner/gpu"

	"github.com/rs/zerolog"
)

// monitor samples the GPUs and averages their activity over a window.
type monitor struct {
	source gpu.Source
	clock  *clock.Clock
	every  time.Duration // daemon's time
	log    zerolog.Logger
	nudge  chan struct{}

	score    func([]float64) float64           // makes one score of a window's readings
	spend    func(units.Instant, []gpu.Sample) // accounts the energy of a sample, or nil
	clients  func([]gpu.Sample)                // follows MPS clients in a sample, or nil
	hosts    func() []model.HostSample         // samples host memory, or nil if none is allocated
	promised *softReservations                 // memory reserved for tasks by soft limits
	reset    func([]model.GPUID)               // is called with GPUs that are no longer broken, or nil

	mu     sync.Mutex
	round  chan struct{} // closed and replaced when a sample was read and reported
	latest []gpu.Sample
	last   []model.GPUSample // the last sample given to the mapper
	seen   map[gpu.AttemptKey]*observedMemory
	idle   map[gpu.AttemptKey]*gpuWatch
	broken map[model.GPUID]bool // GPUs with a fault that lasts until a reset
	window map[string][]reading
	times  map[timesOf][]timed
	failed time.Time // when readings began to fail (wall clock), or zero
	fault  string    // the fault that the mapper gets if failures last
}

// observedMemory is the observed memory use of an attempt.
type observedMemory struct {
	peak  units.Bytes
	curve curve
}

type reading struct {
	at                  units.Instant
	smact, smocc, drama float64
	coarse              bool
}

const (
	// activityWindow is the time over which activity is averaged: 30 s, as long
	// as a GPU is closed after a launch.
	activityWindow = 30 * time.Second
	sampleLimit    = 5 * time.Second       // wall clock
	sampleLeast    = 50 * time.Millisecond // wall clock, between two samples
	// unreadable is the time for which unreadable GPUs still get tasks, by their last sample
	// (wall clock).
	unreadable = 30 * time.Second
)

func newMonitor(s gpu.Source, c *clock.Clock, every time.Duration, log zerolog.Logger) *monitor {
	return &monitor{
		source: s, clock: c, every: every, log: log, nudge: make(chan struct{}, 1), round: make(chan struct{}), score: mean, promised: &softReservations{},
		seen: map[gpu.AttemptKey]*observedMemory{}, idle: map[gpu.AttemptKey]*gpuWatch{}, broken: map[model.GPUID]bool{}, window: map[string][]reading{}, times: map[timesOf][]timed{},
	}
}

func (m *monitor) wake() {
	select {
	case m.nudge <- struct{}{}:
	default:
	}
}

// run samples until ctx ends. It reports changes since the last sample that report
// accepted.
func (m *monitor) run(ctx context.Context, report func(model.Sampled) bool) {
	var last sampleDelta
	for {
		ev, ok := m.sample(ctx)
		if ok {
			if news, differs := last.changed(ev); differs && report(news) {
				last.sent(news, ev)
			}
		}
		m.rounded()
		m.tellResets(ev)
		if ok && m.clients != nil {
			m.clients(m.readings())
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

func (m *monitor) sample(ctx context.Context) (model.Sampled, bool) {
	limited, cancel := context.WithTimeout(ctx, sampleLimit)
	began := time.Now()
	samples, err := m.source.Sample(limited)
	cancel()
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil {
		if ctx.Err() != nil {
			return model.Sampled{}, false
		}
		m.lookFor(nil, began) // the processes during the failed reading are unknown
		return m.unread(err, time.Now())
	}
	if !m.failed.IsZero() {
		m.log.Info().Msg("the GPUs can be read again")
	}
	m.failed, m.fault, m.latest = time.Time{}, "", samples
	ev := model.Sampled{At: m.clock.Now(), GPUs: make([]model.GPUSample, 0, len(samples))}
	for _, s := range samples {
		ev.GPUs = append(ev.GPUs, m.digest(ev.At, s))
	}
	m.watch(ev.At, samples, began)
	if m.spend != nil {
		m.spend(ev.At, samples)
	}
	m.last = ev.GPUs
	if m.hosts != nil {
		ev.Hosts = m.hosts()
	}
	return ev, true
}

// watch keeps the memory use of each attempt, on the GPU where it is highest.
func (m *monitor) watch(now units.Instant, samples []gpu.Sample, began time.Time) {
	most := map[gpu.AttemptKey]units.Bytes{}
	for _, s := range samples {
		here, peak := map[gpu.AttemptKey]units.Bytes{}, map[gpu.AttemptKey]units.Bytes{}
		for _, p := range s.Processes {
			if p.Task == 0 {
				continue
			}
			key := gpu.AttemptKey{Task: p.Task, Attempt: p.Attempt}
			here[key] += p.Used
			peak[key] += max(p.Used, p.Peak) // a task may have several processes
		}
		for key, used := range here {
			if m.seen[key] == nil {
				m.seen[key] = &observedMemory{}
			}
			m.seen[key].peak = max(m.seen[key].peak, peak[key])
			most[key] = max(most[key], used)
		}
	}
	for key, used := range most {
		m.seen[key].curve.add(now, used)
	}
	m.lookFor(samples, began)
}

// unread records a failed reading of the GPUs. When readings have failed for the time
// unreadable, all GPUs have a fault.
func (m *monitor) unread(err error, now time.Time) (model.Sampled, bool) {
	if m.failed.IsZero() {
		m.failed = now
		m.log.Error().Err(err).Msg("the GPUs cannot be read; decisions use the last sample")
	}
	if now.Sub(m.failed) < unreadable {
		return model.Sampled{}, false
	}
	if m.fault == "" {
		m.fault = "it cannot be read: " + err.Error()
		m.log.Error().Err(err).Msg("the GPUs cannot be read; they get no tasks until they can")
	}
	ev := model.Sampled{At: m.clock.Now()}
	for _, g := range m.last {
		g.Fault = m.fault
		ev.GPUs = append(ev.GPUs, g)
	}
	return ev, len(ev.GPUs) > 0
}

// digest turns one GPU's reading into a sample for the mapper.
func (m *monitor) digest(now units.Instant, s gpu.Sample) model.GPUSample {
	out := model.GPUSample{ID: model.GPUID(s.UUID), Used: s.Used, Fault: s.Fault, UntilReset: s.Lasts, FromDriver: s.Told}
	for _, p := range s.Processes {
		if p.Task == 0 {
			continue
		}
		out.Tasks = addUse(out.Tasks, p.Task, p.Used)
	}
	m.timeTasks(now, &s, out.Tasks)
	out.OtherProcesses = foreign(&s, m.promised.unused(&s))
	out.Coarse = s.Coarse
	w := append(m.window[s.UUID], reading{now, s.SMACT, s.SMOCC, s.DRAMA, s.Coarse})
	if w[0].coarse != s.Coarse {
		w = w[len(w)-1:] // a bound and an activity have no mean
	}
	for len(w) > 1 && now.Sub(w[0].at) > activityWindow {
		w = w[1:]
	}
	m.window[s.UUID] = w
	of := func(f func(reading) float64) float64 {
		v := make([]float64, len(w))
		for i, r := range w {
			v[i] = f(r)
		}
		return percent(m.score(v))
	}
	out.SMACT = of(func(r reading) float64 { return r.smact })
	out.SMOCC = of(func(r reading) float64 { return r.smocc })
	out.DRAMA = of(func(r reading) float64 { return r.drama })
	return out
}

// percent rounds to hundredths, because finer differences are noise and would only fill
// the journal.
func percent(v float64) float64 { return math.Round(min(1, max(0, v))*100) / 100 }

func addUse(uses []model.TaskUse, id model.TaskID, used units.Bytes) []model.TaskUse {
	for i := range uses {
		if uses[i].Task == id {
			uses[i].Used += used
			return uses
		}
	}
	return append(uses, model.TaskUse{Task: id, Used: used})
}

// sighting returns the peak and the curve of an attempt so far, or 0 and nil if nothing
// was observed.
func (m *monitor) sighting(task model.TaskID, attempt int) (peak units.Bytes, c *curve) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.seen[gpu.AttemptKey{Task: task, Attempt: attempt}]; s != nil {
		return s.peak, s.curve.clone()
	}
	return 0, nil
}

// forget drops the observations of an attempt.
func (m *monitor) forget(task model.TaskID, attempt int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := gpu.AttemptKey{Task: task, Attempt: attempt}
	delete(m.seen, key)
	delete(m.idle, key)
	maps.DeleteFunc(m.times, func(of timesOf, _ []timed) bool { return of.attempt == key })
}

// readings returns the last samples of all GPUs.
func (m *monitor) readings() []gpu.Sample {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.latest
}

// reading returns the last sample of a GPU. ok is false before the first sample.
func (m *monitor) reading(uuid string) (s gpu.Sample, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.latest {
		if s.UUID == uuid {
			return s, true
		}
	}
	return gpu.Sample{}, false
}
