package runner

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"carma/containers"
	"carma/mapper/model"
	"carma/runner/gpu"
	"carma/runner/gpu/devices"
	"carma/runner/monitor"
)

// DeviceChecker checks whether the processes of containers can open their device nodes.
// [devices.Checker] is one.
type DeviceChecker interface {
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
	// accessEvery is the time between two checks of all containers: nodes can be lost
	// without a change of the rules.
	accessEvery = 5 * time.Minute
	// accessPatience is the longest time without a process on its GPUs for an attempt
	// that lost its devices and has used them before. Its program may be between two
	// stages, or end well without a GPU.
	accessPatience = 10 * time.Minute
)

// mostMisses is the number of failed searches for a container's process after which the
// searches stop. The process may be on another machine.
const mostMisses = 5

// deviceCheck is the result of the last check of an attempt's devices.
type deviceCheck struct {
	State devices.State
	At    time.Time
	// Lost are the paths of the nodes that cannot be opened.
	Lost []string
}

// deviceWatch checks whether the containers of running attempts can open the devices
// of their GPUs.
type deviceWatch struct {
	checker DeviceChecker // nil if nothing is checked
	now     func() time.Time
	changed func(gpu.AttemptKey, deviceCheck)
	nudge   chan struct{}

	faults string // of the GPUs, in the last reading; only follow uses it

	mu sync.Mutex
	of map[gpu.AttemptKey]*watchedDevices
}

// watchedDevices is the state of one attempt's devices.
type watchedDevices struct {
	names []string // of the container, in control groups
	gpus  []string
	// pid is the container's first process, or 0 if it is not found yet. misses counts
	// the failed searches for it. rules are the container's device rules. Only round uses
	// these fields.
	pid, misses int
	rules       string

	seen []devices.Node // nodes of the first check that found any
	due  bool           // the next round checks the attempt
	last deviceCheck

	// used is set if a process of the attempt was on its GPUs. quiet counts the
	// consecutive readings without such a process since the devices were lost. quietSince
	// is the time of the first of them.
	used       bool
	quiet      int
	quietSince time.Time
	lost       chan struct{} // closed when the attempt is to end
	ended      bool          // lost is closed
}

func newDeviceWatch(c DeviceChecker, changed func(gpu.AttemptKey, deviceCheck)) *deviceWatch {
	return &deviceWatch{checker: c, now: time.Now, changed: changed, nudge: make(chan struct{}, 1), of: map[gpu.AttemptKey]*watchedDevices{}}
}

// add begins to watch an attempt, until stop is called. last is the state that an
// earlier daemon recorded. used says that the attempt may have used its GPUs before,
// which this daemon has not seen.
func (d *deviceWatch) add(key gpu.AttemptKey, gpus []string, last deviceCheck, used bool, names ...string) (w *watchedDevices, stop func()) {
	w = &watchedDevices{names: names, gpus: gpus, used: used, due: true, last: last, lost: make(chan struct{})}
	if d.checker == nil || len(gpus) == 0 {
		return w, func() {}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.of[key] = w
	d.wake()
	return w, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.of, key)
	}
}

// wake starts a round now.
func (d *deviceWatch) wake() {
	select {
	case d.nudge <- struct{}{}:
	default:
	}
}

// checkAll starts a check of all attempts: something has happened that can remove devices.
func (d *deviceWatch) checkAll() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, w := range d.of {
		w.due = true
	}
	d.wake()
}

// state returns the last check of an attempt that runs.
func (d *deviceWatch) state(key gpu.AttemptKey) deviceCheck {
	d.mu.Lock()
	defer d.mu.Unlock()
	if w := d.of[key]; w != nil {
		return w.last
	}
	return deviceCheck{State: devices.Unknown}
}

// run checks until ctx ends.
func (d *deviceWatch) run(ctx context.Context) {
	if d.checker == nil {
		return
	}
	tick, all := time.NewTicker(rulesEvery), time.NewTicker(accessEvery)
	defer tick.Stop()
	defer all.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.nudge:
		case <-tick.C:
		case <-all.C:
			d.checkAll()
		}
		d.round(ctx)
	}
}

// round checks the attempts that are due and the attempts with changed device rules.
func (d *deviceWatch) round(ctx context.Context) {
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
func (w *watchedDevices) isDue(d *deviceWatch) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	due := w.due
	w.due = false
	return due
}

// find finds the processes of the containers that are due and have none yet.
func (d *deviceWatch) find(list map[gpu.AttemptKey]*watchedDevices) {
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
func (d *deviceWatch) note(key gpu.AttemptKey, w *watchedDevices, r devices.Result) {
	d.mu.Lock()
	r = r.Missing(w.seen)
	now := deviceCheck{State: r.State(), At: d.now(), Lost: r.Lost()}
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

// follow processes a reading of all GPUs. An attempt that lost its devices and has no
// process on its GPUs must end, because new programs in it fail.
func (d *deviceWatch) follow(samples []gpu.Sample) {
	var faults strings.Builder
	for _, s := range samples {
		_, _ = faults.WriteString(s.UUID + s.Fault + strings.Join(s.Warnings, ""))
	}
	if faults.String() != d.faults {
		d.faults = faults.String()
		d.checkAll()
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
			if w.quiet >= monitor.MinReadings && (!w.used || d.now().Sub(w.quietSince) >= accessPatience) {
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

// devicesChanged records that an attempt lost its devices, or has them back.
func (r *Runner) devicesChanged(key gpu.AttemptKey, now deviceCheck) {
	ev := model.DevicesChecked{At: r.Clock.Now(), Task: key.Task, Attempt: key.Attempt}
	line := r.Log.Info()
	if now.State.Lost() {
		ev.State, ev.GPUs = model.DeviceState(now.State), r.lostGPUs(key, now)
		line = r.Log.Warn().Strs("nodes", now.Lost)
	}
	text := r.devicesText(&model.DeviceLoss{State: ev.State, GPUs: ev.GPUs})
	line.Int64("task", int64(key.Task)).Int("attempt", key.Attempt).Msg(text)
	r.consoles.Say(key.Task, text)
	r.post(fact(ev))
}

// lostGPUs returns the GPUs of an attempt that have lost their own nodes. It returns all of
// its GPUs if only nodes are lost that GPUs share, or it is not known which GPU has which
// node.
func (r *Runner) lostGPUs(key gpu.AttemptKey, now deviceCheck) (lost []model.GPUID) {
	rec, _ := r.records.Get(key.Task)
	if rec == nil || rec.Task.Alive() == nil {
		return nil
	}
	all := make([]model.GPUID, 0, 1)
	for _, g := range rec.Task.Alive().Grants {
		all = append(all, g.GPU)
		own := r.nodes(containers.AttachCDI, []string{string(g.GPU)})
		if slices.ContainsFunc(own, func(path string) bool { return slices.Contains(now.Lost, path) }) {
			lost = append(lost, g.GPU)
		}
	}
	if len(lost) == 0 {
		return all
	}
	return lost
}

// devicesText describes a loss of devices, as a sentence without a subject.
func (r *Runner) devicesText(l *model.DeviceLoss) string {
	which := "its GPUs"
	if len(l.GPUs) > 0 {
		which = r.gpusText(l.GPUs)
	}
	switch l.State {
	case model.DevicesDenied:
		return which + " can no longer be opened in the container (device cgroup)"
	case model.DevicesGone:
		return which + " can no longer be opened in the container (the device node is gone)"
	}
	return "its GPUs can be opened in the container again"
}

// whyDevices returns the text that carma why shows for a running task that lost its devices, or
// "".
func (r *Runner) whyDevices(t *model.Task) string {
	a := t.Current()
	if a == nil || a.Devices == nil {
		return ""
	}
	return "; " + r.devicesText(a.Devices) + " since " + a.Devices.Since.Time().Local().Format("2006-01-02 15:04") +
		": running programs go on, programs that open them again fail; if the task fails, or has no process on a GPU, it is started again without blame"
}

// watchDevices watches the devices of an attempt, until stop is called, and ends the
// attempt if it has lost them and does not use them.
func (w *worker) watchDevices(ctx context.Context, id string) (stop func()) {
	watched, forget := w.access.add(w.key(), w.uuids(), w.recordedDevices(), w.resumed, id, w.containerName(w.launch.Task, w.launch.Attempt))
	ctx, cancel := context.WithCancel(ctx)
	over := make(chan struct{})
	go func() {
		defer close(over)
		select {
		case <-ctx.Done():
		case <-watched.lost:
			w.endWithoutDevices(ctx, id)
		}
	}()
	return func() {
		cancel()
		<-over
		forget()
	}
}

// endWithoutDevices stops an attempt by its stop signal and, after the grace, kills it.
func (w *worker) endWithoutDevices(ctx context.Context, id string) {
	if w.stopRequested() {
		return
	}
	w.deviceLost.Store(true)
	w.Log.Warn().Int64("task", int64(w.launch.Task)).Int("attempt", w.launch.Attempt).Msg("the task cannot open its GPUs and has no process on them; it is stopped, and started again without blame")
	short, cancel := context.WithTimeout(ctx, signalLimit)
	err := w.Driver.Signal(short, id)
	cancel()
	if err == nil {
		select {
		case <-ctx.Done():
			return
		case <-time.After(w.grace(w.rec)):
		}
	}
	_ = w.kill(ctx, id)
}

// deviceState returns the last check of the attempt's devices while it ran, by this
// daemon or an earlier one. The zero time means that there was none.
func (w *worker) deviceState() deviceCheck { return w.access.state(w.key()) }

// recordedDevices returns the state of the attempt's devices as it is in the journal.
func (w *worker) recordedDevices() deviceCheck {
	rec, _ := w.records.Get(w.launch.Task)
	if rec == nil || rec.Task.Alive() == nil || rec.Task.Alive().N != w.launch.Attempt || rec.Task.Alive().Devices == nil {
		return deviceCheck{State: devices.Unknown}
	}
	l := rec.Task.Alive().Devices
	return deviceCheck{State: devices.State(l.State), At: l.Since.Time()}
}

// deviceEnding returns the end of an attempt that carma has ended because it lost its
// devices and had no process on them, as a fault of the infrastructure.
func (w *worker) deviceEnding(end ending) ending {
	if w.stopRequested() || end.fault != nil || !w.deviceLost.Load() {
		return end
	}
	end.class, end.message = model.ExitInfrastructure, w.lossText(w.deviceState())+"; and it had no process on it"
	return end
}

// lossText returns a text with the GPUs of the attempt that a check of its devices found lost.
func (w *worker) lossText(now deviceCheck) string {
	return w.devicesText(&model.DeviceLoss{State: model.DeviceState(now.State), GPUs: w.lostGPUs(w.key(), now)})
}
