package monitor

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

// Monitor samples the GPUs and averages their activity over a window.
type Monitor struct {
	source gpu.Source
	clock  *clock.Clock
	every  time.Duration // daemon's time
	log    zerolog.Logger
	nudge  chan struct{}

	score func([]float64) float64 // makes one score of a window's readings
	hooks Hooks
	soft  softReservations // memory reserved for tasks by soft limits

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
	curve Curve
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
	// SampleTimeout bounds the time that a reading of all GPUs may take (wall clock).
	SampleTimeout = 5 * time.Second
	sampleLeast   = 50 * time.Millisecond // wall clock, between two samples
	// unreadable is the time for which unreadable GPUs still get tasks, by their last sample
	// (wall clock).
	unreadable = 30 * time.Second
)

// Hooks are functions that a Monitor calls. A nil function is left out.
type Hooks struct {
	// Energy accounts the energy of a sample, at an instant of the daemon's time. The
	// Monitor is locked, so Energy must call none of its methods.
	Energy func(units.Instant, []gpu.Sample)
	// Clients follows MPS clients and device access in a sample that was reported.
	Clients func([]gpu.Sample)
	// Hosts samples host memory; it returns nil if none is allocated. The Monitor is locked.
	Hosts func() []model.HostSample
	// Reset is called with GPUs that were broken until a reset and no longer are.
	Reset func([]model.GPUID)
}

// New returns a monitor that samples a source each time that every has passed, in the
// daemon's time. activity is [ActivityMean], which empty means too, or [ActivityRisk].
func New(s gpu.Source, c *clock.Clock, every time.Duration, activity string, log zerolog.Logger) (*Monitor, error) {
	score, err := scoreOf(activity)
	if err != nil {
		return nil, err
	}
	return &Monitor{
		source: s, clock: c, every: every, log: log, nudge: make(chan struct{}, 1), round: make(chan struct{}), score: score,
		seen: map[gpu.AttemptKey]*observedMemory{}, idle: map[gpu.AttemptKey]*gpuWatch{}, broken: map[model.GPUID]bool{}, window: map[string][]reading{}, times: map[timesOf][]timed{},
	}, nil
}

// SetHooks sets the functions that the monitor calls. Call it before Run.
func (m *Monitor) SetHooks(h Hooks) { m.hooks = h }

// MarkBroken records that a GPU had a fault that lasts until a reset when the last daemon
// ended. Call it before Run.
func (m *Monitor) MarkBroken(id model.GPUID) { m.broken[id] = true }

// FailedSince returns the wall-clock time since which the GPUs cannot be read, or zero if
// they can.
func (m *Monitor) FailedSince() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.failed
}

// Wake makes Run take a sample now.
func (m *Monitor) Wake() {
	select {
	case m.nudge <- struct{}{}:
	default:
	}
}

// Run samples until ctx ends. It reports changes since the last sample that report
// accepted.
func (m *Monitor) Run(ctx context.Context, report func(model.Sampled) bool) {
	var last sampleDelta
	for {
		ev, ok := m.sample(ctx)
		if ok {
			if news, differs := last.changed(ev); differs && report(news) {
				last.sent(news, ev)
			}
		}
		m.endRound()
		m.reportResets(ev)
		if ok && m.hooks.Clients != nil {
			m.hooks.Clients(m.Readings())
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

func (m *Monitor) sample(ctx context.Context) (model.Sampled, bool) {
	limited, cancel := context.WithTimeout(ctx, SampleTimeout)
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
	m.recordMemory(ev.At, samples, began)
	if m.hooks.Energy != nil {
		m.hooks.Energy(ev.At, samples)
	}
	m.last = ev.GPUs
	if m.hooks.Hosts != nil {
		ev.Hosts = m.hooks.Hosts()
	}
	return ev, true
}

// recordMemory keeps the memory use of each attempt, on the GPU where it is highest.
func (m *Monitor) recordMemory(now units.Instant, samples []gpu.Sample, began time.Time) {
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
		m.seen[key].curve.Add(now, used)
	}
	m.lookFor(samples, began)
}

// unread records a failed reading of the GPUs. When readings have failed for the time
// unreadable, all GPUs have a fault.
func (m *Monitor) unread(err error, now time.Time) (model.Sampled, bool) {
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
func (m *Monitor) digest(now units.Instant, s gpu.Sample) model.GPUSample {
	out := model.GPUSample{ID: model.GPUID(s.UUID), Used: s.Used, Fault: s.Fault, UntilReset: s.Lasts, FromDriver: s.Told}
	for _, p := range s.Processes {
		if p.Task == 0 {
			continue
		}
		out.Tasks = addUse(out.Tasks, p.Task, p.Used)
	}
	m.timeTasks(now, &s, out.Tasks)
	out.OtherProcesses = foreign(&s, m.soft.unused(&s))
	out.Coarse = s.Coarse
	w := append(m.window[s.UUID], reading{now, s.SMACT, s.SMOCC, s.DRAMA, s.Coarse})
	if w[0].coarse != s.Coarse {
		w = w[len(w)-1:] // upper bounds and activities must not be averaged together
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

// Observed returns the peak and the curve of an attempt so far, or 0 and nil if nothing
// was observed.
func (m *Monitor) Observed(task model.TaskID, attempt int) (peak units.Bytes, c *Curve) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.seen[gpu.AttemptKey{Task: task, Attempt: attempt}]; s != nil {
		return s.peak, s.curve.clone()
	}
	return 0, nil
}

// Forget drops the observations of an attempt.
func (m *Monitor) Forget(task model.TaskID, attempt int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := gpu.AttemptKey{Task: task, Attempt: attempt}
	delete(m.seen, key)
	delete(m.idle, key)
	maps.DeleteFunc(m.times, func(of timesOf, _ []timed) bool { return of.attempt == key })
}

// Readings returns the last samples of all GPUs.
func (m *Monitor) Readings() []gpu.Sample {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.latest
}

// Reading returns the last sample of a GPU. ok is false before the first sample.
func (m *Monitor) Reading(uuid string) (s gpu.Sample, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.latest {
		if s.UUID == uuid {
			return s, true
		}
	}
	return gpu.Sample{}, false
}

// reportResets reports the GPUs that were broken in the previous sample and are no longer.
// Only run calls it.
func (m *Monitor) reportResets(ev model.Sampled) {
	var reset []model.GPUID
	for _, g := range ev.GPUs {
		if m.broken[g.ID] && !g.UntilReset {
			reset = append(reset, g.ID)
		}
		m.broken[g.ID] = g.UntilReset
	}
	if len(reset) > 0 && m.hooks.Reset != nil {
		m.hooks.Reset(reset)
	}
}

// WaitForSample waits until a sample is reported whose reading began after the call, or until ctx
// ends.
func (m *Monitor) WaitForSample(ctx context.Context) {
	for range 2 { // the current reading may have begun before the call
		m.mu.Lock()
		round := m.round
		m.mu.Unlock()
		m.Wake()
		select {
		case <-round:
		case <-ctx.Done():
			return
		}
	}
}

// endRound wakes the goroutines that wait for a sample to be read and reported.
func (m *Monitor) endRound() {
	m.mu.Lock()
	defer m.mu.Unlock()
	close(m.round)
	m.round = make(chan struct{})
}
