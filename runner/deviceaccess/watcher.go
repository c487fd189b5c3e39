package deviceaccess

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"carma/runner/gpu"
	"carma/runner/gpu/devices"
	"carma/runner/monitor"
)

// Checker checks whether the processes of containers can open their device nodes.
// [devices.Checker] is one.
type Checker interface {
	// Find returns the first process of each container, by the container's name.
	Find(names map[string]bool) map[string]int
	// Rules returns a text that changes with the device rules of a container, or an
	// empty text if they cannot be read.
	Rules(pid int, names []string) string
	// Check returns a result for each container, in order.
	Check(ctx context.Context, all []devices.Container) []devices.Result
}

const (
	// rulesEvery is the time between two comparisons of device rules with the rules found before.
	// A comparison reads some files and starts no process.
	rulesEvery = 2 * time.Second
	// allEvery is the time between two checks of all containers: nodes can be lost
	// without a change of the rules.
	allEvery = 5 * time.Minute
	// patience is the longest time without a process on its GPUs for an attempt
	// that lost its devices and has used them before. Its program may be between two
	// stages, or end well without a GPU.
	patience = 10 * time.Minute
)

// mostMisses is the number of failed searches for a container's process after which the
// searches stop. The process may be on another machine.
const mostMisses = 5

// Result is the result of the last check of an attempt's devices.
type Result struct {
	State devices.State
	At    time.Time
	// Lost are the paths of the nodes that cannot be opened.
	Lost []string
}

// Watcher checks whether the containers of running attempts can open the devices
// of their GPUs.
type Watcher struct {
	checker Checker // nil if nothing is checked
	now     func() time.Time
	changed func(gpu.AttemptKey, Result)
	nudge   chan struct{}

	faults string // of the GPUs, in the last reading; only Follow uses it

	mu sync.Mutex
	of map[gpu.AttemptKey]*watched
}

// watched is the state of one attempt's devices.
type watched struct {
	names []string // of the container, in control groups
	gpus  []string
	// pid is the container's first process, or 0 if it is not found yet. misses counts
	// the failed searches for it. rules are the container's device rules. Only round uses
	// these fields.
	pid, misses int
	rules       string

	seen []devices.Node // nodes of the first check that found any
	due  bool           // the next round checks the attempt
	last Result

	// used is set if a process of the attempt was on its GPUs. quiet counts the
	// consecutive readings without such a process since the devices were lost. quietSince
	// is the time of the first of them.
	used       bool
	quiet      int
	quietSince time.Time
	lost       chan struct{} // closed when the attempt is to end
	ended      bool          // lost is closed
}

// New returns a watcher that calls changed when an attempt loses its devices, or has them
// back. If c is nil, it checks nothing.
func New(c Checker, changed func(gpu.AttemptKey, Result)) *Watcher {
	return &Watcher{checker: c, now: time.Now, changed: changed, nudge: make(chan struct{}, 1), of: map[gpu.AttemptKey]*watched{}}
}

// Add begins to watch an attempt, until stop is called. last is the state that an
// earlier daemon recorded. used says that the attempt may have used its GPUs before,
// which this daemon has not seen. lost is closed when the attempt must end, because it
// lost its devices and does not use them.
func (d *Watcher) Add(key gpu.AttemptKey, gpus []string, last Result, used bool, names ...string) (lost <-chan struct{}, stop func()) {
	w := &watched{names: names, gpus: gpus, used: used, due: true, last: last, lost: make(chan struct{})}
	if d.checker == nil || len(gpus) == 0 {
		return w.lost, func() {}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.of[key] = w
	d.wake()
	return w.lost, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.of, key)
	}
}

// wake starts a round now.
func (d *Watcher) wake() {
	select {
	case d.nudge <- struct{}{}:
	default:
	}
}

// CheckAll starts a check of all attempts: something has happened that can remove devices.
func (d *Watcher) CheckAll() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, w := range d.of {
		w.due = true
	}
	d.wake()
}

// State returns the last check of an attempt that runs.
func (d *Watcher) State(key gpu.AttemptKey) Result {
	d.mu.Lock()
	defer d.mu.Unlock()
	if w := d.of[key]; w != nil {
		return w.last
	}
	return Result{State: devices.Unknown}
}

// Run checks until ctx ends.
func (d *Watcher) Run(ctx context.Context) {
	if d.checker == nil {
		return
	}
	tick, all := time.NewTicker(rulesEvery), time.NewTicker(allEvery)
	defer tick.Stop()
	defer all.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.nudge:
		case <-tick.C:
		case <-all.C:
			d.CheckAll()
		}
		d.round(ctx)
	}
}

// round checks the attempts that are due and the attempts with changed device rules.
func (d *Watcher) round(ctx context.Context) {
	d.mu.Lock()
	list := maps.Clone(d.of)
	d.mu.Unlock()
	if len(list) == 0 {
		return
	}
	d.find(list)
	var keys []gpu.AttemptKey
	var ask []devices.Container
	for key, w := range list {
		if w.pid == 0 {
			continue
		}
		due, rules := w.isDue(d), d.checker.Rules(w.pid, w.names)
		switch {
		case rules == "": // its process has ended, or the rules cannot be read
			w.pid = 0
			continue
		case rules == w.rules && !due:
			continue
		}
		w.rules = rules
		keys, ask = append(keys, key), append(ask, devices.Container{PID: w.pid, Names: w.names})
	}
	if len(ask) == 0 {
		return
	}
	for i, r := range d.checker.Check(ctx, ask) {
		if ctx.Err() == nil {
			d.note(keys[i], list[keys[i]], r)
		}
	}
}

// isDue reports whether an attempt is due for a check, and clears the mark.
func (w *watched) isDue(d *Watcher) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	due := w.due
	w.due = false
	return due
}

// find finds the processes of the containers that are due and have none yet.
func (d *Watcher) find(list map[gpu.AttemptKey]*watched) {
	names := map[string]bool{}
	d.mu.Lock()
	for _, w := range list {
		for _, name := range w.names {
			if w.pid == 0 && w.due {
				names[name] = true
			}
		}
	}
	d.mu.Unlock()
	if len(names) == 0 {
		return
	}
	found := d.checker.Find(names)
	for _, w := range list {
		if w.pid != 0 {
			continue
		}
		for _, name := range w.names {
			w.pid = max(w.pid, found[name])
		}
		if w.misses++; w.pid != 0 || w.misses >= mostMisses {
			w.misses = 0
		}
		if w.pid == 0 && w.misses == 0 {
			w.isDue(d) // it is checked again with all attempts
		}
	}
}

// note records the result of a check. A check that could not be made changes nothing.
func (d *Watcher) note(key gpu.AttemptKey, w *watched, r devices.Result) {
	d.mu.Lock()
	r = r.Missing(w.seen)
	now := Result{State: r.State(), At: d.now(), Lost: r.Lost()}
	if now.State == devices.Unknown || d.of[key] != w {
		d.mu.Unlock()
		return
	}
	if w.seen == nil {
		w.seen = r.Nodes
	}
	was := w.last
	w.last = now
	if !now.State.Lost() {
		w.quiet = 0
	}
	d.mu.Unlock()
	if was.State.Lost() != now.State.Lost() || now.State.Lost() && (was.State != now.State || !slices.Equal(was.Lost, now.Lost)) {
		d.changed(key, now)
	}
}

// Follow processes a reading of all GPUs. An attempt that lost its devices and has no
// process on its GPUs must end, because new programs in it fail.
func (d *Watcher) Follow(samples []gpu.Sample) {
	var faults strings.Builder
	for _, s := range samples {
		_, _ = faults.WriteString(s.UUID + s.Fault + strings.Join(s.Warnings, ""))
	}
	if faults.String() != d.faults {
		d.faults = faults.String()
		d.CheckAll()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for key, w := range d.of {
		here, known := present(key, w.gpus, samples)
		switch {
		case here:
			w.used, w.quiet = true, 0
		case !known || !w.last.State.Lost() || w.ended:
		default:
			if w.quiet++; w.quiet == 1 {
				w.quietSince = d.now()
			}
			if w.quiet >= monitor.MinReadings && (!w.used || d.now().Sub(w.quietSince) >= patience) {
				w.ended = true
				close(w.lost)
			}
		}
	}
}

// present reports whether a reading shows a process of an attempt on its GPUs. known is
// false if a GPU has a fault or a process without a PID.
func present(key gpu.AttemptKey, gpus []string, samples []gpu.Sample) (here, known bool) {
	known = true
	for _, uuid := range gpus {
		i := slices.IndexFunc(samples, func(s gpu.Sample) bool { return s.UUID == uuid })
		if i < 0 || samples[i].Fault != "" {
			known = false
			continue
		}
		for _, p := range samples[i].Processes {
			here = here || p.Task == key.Task && p.Attempt == key.Attempt
			known = known && p.PID != 0
		}
	}
	return here, known
}
