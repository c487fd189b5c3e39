package mapper

import (
	"math"
	"slices"
	"time"

	"carma/internal/units"
	"carma/mapper/interference"
	"carma/mapper/model"
	"carma/mapper/policy"

	"pgregory.net/rapid"
)

func anyOptions(t *rapid.T) model.Options {
	o := model.Options{
		Policy:           rapid.SampledFrom(append(policy.Names(), "carma", "carma", "carma")).Draw(t, "policy"),
		Headroom:         rapid.SampledFrom([]units.Bytes{0, units.GiB, 4 * units.GiB}).Draw(t, "headroom"),
		Booking:          oneOf(t, "booking", model.Bookings),
		Margin:           rapid.SampledFrom([]units.Bytes{0, 0, 2 * units.GiB, 13 * units.GiB}).Draw(t, "margin"),
		MinFree:          rapid.SampledFrom([]units.Bytes{0, 2 * units.GiB}).Draw(t, "min free"),
		SMACTCap:         rapid.SampledFrom([]float64{0, 0.8}).Draw(t, "SMACT cap"),
		SMOCCCap:         rapid.SampledFrom([]float64{0, 0, 0.45}).Draw(t, "SMOCC cap"),
		DRAMACap:         rapid.SampledFrom([]float64{0, 0, 0.4}).Draw(t, "DRAMA cap"),
		SlowdownCap:      rapid.SampledFrom([]float64{0, 1, 1.1, 3, 100}).Draw(t, "slowdown cap"),
		MaxTasks:         rapid.SampledFrom([]int{0, 1, 3}).Draw(t, "max tasks"),
		WarmUp:           rapid.SampledFrom([]time.Duration{0, 30 * time.Second}).Draw(t, "warm-up"),
		Interval:         rapid.SampledFrom([]time.Duration{0, 0, 1, 20 * time.Second}).Draw(t, "interval"),
		LaunchesAtOnce:   rapid.SampledFrom([]int{0, 0, 1, 3}).Draw(t, "launches at once"),
		Order:            oneOf(t, "order", model.Orders),
		Learn:            rapid.Bool().Draw(t, "learn"),
		Watchdog:         rapid.SampledFrom(append([]string{""}, model.Watchdogs...)).Draw(t, "watchdog"),
		Shrink:           rapid.SampledFrom([]time.Duration{0, time.Minute}).Draw(t, "shrink"),
		LearnMemory:      rapid.SampledFrom([]time.Duration{0, time.Second, 2 * time.Minute}).Draw(t, "learn memory"),
		MakeWay:          rapid.Bool().Draw(t, "make way"),
		SwapShorter:      rapid.Bool().Draw(t, "swap shorter"),
		FillHeld:         rapid.Bool().Draw(t, "fill held"),
		Recovery:         oneOf(t, "recovery", model.Recoveries),
		IdleFirst:        rapid.Bool().Draw(t, "idle first"),
		LookAhead:        rapid.SampledFrom([]int{1, 2, 5, 64}).Draw(t, "look-ahead"),
		Ageing:           rapid.SampledFrom([]time.Duration{0, time.Minute, time.Hour}).Draw(t, "ageing"),
		Attempts:         rapid.IntRange(1, 5).Draw(t, "attempts"),
		BlamelessRetries: rapid.IntRange(0, 4).Draw(t, "blameless retries"),
		Backoff:          rapid.SampledFrom([]time.Duration{0, 10 * time.Second}).Draw(t, "backoff"),
		IdleReport:       rapid.SampledFrom([]time.Duration{0, 5 * time.Second}).Draw(t, "idle report"),
		IdleStop:         rapid.SampledFrom([]time.Duration{0, 20 * time.Second}).Draw(t, "idle stop"),
		IdleYield:        rapid.SampledFrom([]time.Duration{0, 0, 30 * time.Second}).Draw(t, "idle yield"),
	}
	anySuspends(t, &o)
	anyUserRules(t, &o)
	if err := Validate(o); err != nil {
		t.Fatal(err)
	}
	return o
}

// oneOf draws a value of an option, or leaves it out.
func oneOf(t *rapid.T, name string, values []string) string {
	return rapid.SampledFrom(append([]string{""}, values...)).Draw(t, name)
}

// anyExpected draws a task's expected load: unknown, or light, medium or heavy, on one
// GPU or on two.
func anyExpected(t *rapid.T) model.Expected {
	loads := []interference.Load{
		{SMACT: 0.1, SMOCC: 0.05, DRAMA: 0.05, Step: 0.02}, {SMACT: 0.3, SMOCC: 0.2, DRAMA: 0.2, Step: 0.05},
		{SMACT: 0.5, SMOCC: 0.3, DRAMA: 0.6}, {SMACT: 0.85, SMOCC: 0.4, DRAMA: 0.4, Step: 0.3},
	}
	if all := rapid.SliceOfN(rapid.SampledFrom(loads), 0, 2).Draw(t, "loads"); len(all) > 0 {
		return model.Expected{Loads: all}
	}
	return model.Expected{}
}

func anyMemory(t *rapid.T) units.Bytes {
	return rapid.SampledFrom([]units.Bytes{0, 1, 2, 4, 7, 11, 15, 16, 23, 31, 40}).Draw(t, "GiB") * units.GiB
}

func (m *machine) submit(t *rapid.T) {
	m.last++
	r := model.Request{
		Slot: rapid.SampledFrom([]time.Duration{0, 0, 30 * time.Second}).Draw(t, "slot"),
		ID:   m.last, User: rapid.SampledFrom([]string{"", "ada", "bob"}).Draw(t, "user"), Account: rapid.SampledFrom([]string{"", "lab", "lab", "ops"}).Draw(t, "account"), Namespace: rapid.SampledFrom([]string{"", "ann", "ann", "ben"}).Draw(t, "namespace"), GPUs: rapid.SampledFrom([]int{1, 1, 1, 2, 3}).Draw(t, "GPUs"),
		Priority: rapid.SampledFrom([]model.Priority{model.Normal, model.Normal, model.Low, model.High}).Draw(t, "priority"),
		Retries:  rapid.IntRange(0, 2).Draw(t, "retries"), Exclusive: rapid.IntRange(0, 4).Draw(t, "exclusive") == 0,
		TimeLimit: rapid.SampledFrom([]time.Duration{0, 0, time.Minute}).Draw(t, "time limit"),
		Terminal:  rapid.IntRange(0, 3).Draw(t, "terminal") == 0, IdleStop: rapid.SampledFrom([]time.Duration{0, 0, 0, -1, 10 * time.Second}).Draw(t, "its idle stop"),
	}
	if kind := rapid.SampledFrom([]string{"", "a1", "a2", "b1", "c"}).Draw(t, "kind"); kind != "" {
		r.Kind, r.Family = kind, kind[:1]
	}
	r.Image = rapid.SampledFrom([]string{"", "x", "y"}).Draw(t, "image")
	m.anyHost(t, &r)
	m.anyWaits(t, &r)
	m.shape[r.ID], m.open[r.ID] = r, true
	m.born[r.ID] = max(m.now, m.s.Now())
	m.step(t, model.TaskSubmitted{At: m.now, Request: r})
}

func (m *machine) estimate(t *rapid.T) {
	if id, ok := m.any(t, model.Estimating); ok {
		e := model.Estimate{Memory: anyMemory(t)}
		if rapid.IntRange(0, 2).Draw(t, "known") == 0 {
			e = model.Estimate{WholeGPU: true}
		}
		m.step(t, model.Estimated{At: m.now, Task: id, Estimate: e, Expected: anyExpected(t)})
	}
}

// more submits several tasks that are likely to fit.
func (m *machine) more(t *rapid.T) {
	for range rapid.IntRange(1, 4).Draw(t, "tasks") {
		m.submit(t)
		e := model.Estimate{Memory: anyMemory(t) / 2}
		if rapid.IntRange(0, 4).Draw(t, "known") == 0 {
			e = model.Estimate{WholeGPU: true}
		}
		m.step(t, model.Estimated{At: m.now, Task: m.last, Estimate: e, Expected: anyExpected(t)})
	}
}

// any draws an unfinished task in one of some phases.
func (m *machine) any(t *rapid.T, phases ...model.Phase) (model.TaskID, bool) {
	var ids []model.TaskID
	for _, task := range m.s.Tasks() {
		if slices.Contains(phases, task.Phase) {
			ids = append(ids, task.ID)
		}
	}
	if len(ids) == 0 {
		return 0, false
	}
	return rapid.SampledFrom(ids).Draw(t, "task"), true
}

func (m *machine) sample(t *rapid.T) {
	var gpus []model.GPUSample
	for _, g := range m.s.GPUs() {
		if rapid.Bool().Draw(t, "seen") {
			continue
		}
		share := rapid.SampledFrom([]float64{0, 0.4, 0.5, 0.8, 1})
		s := model.GPUSample{ID: g.ID, SMACT: share.Draw(t, "SMACT"), SMOCC: share.Draw(t, "SMOCC"), DRAMA: share.Draw(t, "DRAMA")}
		s.Coarse = rapid.Bool().Draw(t, "coarse")
		s.OtherProcesses = rapid.SampledFrom([]units.Bytes{0, 0, 0, 500 * units.MiB, 3 * units.GiB, 20 * units.GiB}).Draw(t, "foreign")
		s.Fault = rapid.SampledFrom([]string{"", "", "", "ECC"}).Draw(t, "fault")
		s.Used = s.OtherProcesses + rapid.SampledFrom([]units.Bytes{0, 0, units.GiB, 9 * units.GiB, 15 * units.GiB}).Draw(t, "used")
		s.UntilReset, s.FromDriver = rapid.IntRange(0, 2).Draw(t, "lasts") == 0, rapid.Bool().Draw(t, "told")
		m.leaveBehind(t, &s)
		m.alien[g.ID], m.used[g.ID], m.fault[g.ID] = s.OtherProcesses, s.Used, s.Fault != ""
		gpus = append(gpus, s)
	}
	m.step(t, model.Sampled{At: m.now, GPUs: gpus, Hosts: m.hostSamples(t)})
}

// overuse samples the use of the tasks of one GPU, more or less than their grants, and
// its activity; nothing else changes.
func (m *machine) overuse(t *rapid.T) {
	var used []model.GPU
	for _, g := range m.s.GPUs() {
		if len(g.Residents) > 0 {
			used = append(used, g)
		}
	}
	if len(used) == 0 {
		return
	}
	g := rapid.SampledFrom(used).Draw(t, "GPU")
	s := model.GPUSample{ID: g.ID, OtherProcesses: g.OtherProcesses, Fault: g.Fault, SMACT: rapid.SampledFrom([]float64{0, 0.9}).Draw(t, "SMACT"), Coarse: g.Coarse}
	for _, b := range g.Residue {
		s.OtherProcesses -= b.Used
		s.Tasks, s.Used = append(s.Tasks, model.TaskUse{Task: b.Task, Used: b.Used}), s.Used+b.Used
	}
	for _, r := range g.Residents {
		u := r.Grant.Scale(rapid.SampledFrom([]float64{0, 0.5, 1, 1.2, 3}).Draw(t, "used"))
		s.Tasks, s.Used = append(s.Tasks, model.TaskUse{Task: r.Task, Used: u}), s.Used+u
	}
	m.used[g.ID] = s.Used
	m.step(t, model.Sampled{At: m.now, GPUs: []model.GPUSample{s}})
}

// victim samples a task far over its grant and lets a neighbour run out of memory, without
// being at fault.
func (m *machine) victim(t *rapid.T) {
	var shared []model.GPU
	for _, g := range m.s.GPUs() {
		if len(g.Residents) > 1 {
			shared = append(shared, g)
		}
	}
	if len(shared) == 0 {
		return
	}
	g := rapid.SampledFrom(shared).Draw(t, "GPU")
	over, victim := g.Residents[0], g.Residents[1].Task
	if rapid.Bool().Draw(t, "the newer") {
		over, victim = g.Residents[1], g.Residents[0].Task
	}
	m.alien[g.ID], m.used[g.ID], m.fault[g.ID] = 0, g.Capacity, false
	m.step(t, model.Sampled{At: m.now, GPUs: []model.GPUSample{{ID: g.ID, Used: g.Capacity, Tasks: []model.TaskUse{{Task: over.Task, Used: over.Grant + g.Capacity/2}}}}})
	m.step(t, model.Exited{At: m.now, Task: victim, Attempt: m.tries[victim], Class: model.ExitGPUOOM})
}

func (m *machine) hand(t *rapid.T) {
	if id, ok := m.any(t, model.Launching, model.Running, model.Stopping); ok {
		m.step(t, model.LaunchAccepted{At: m.now, Task: id, Attempt: m.tries[id]})
	}
}

func (m *machine) start(t *rapid.T) {
	if id, ok := m.any(t, model.Launching, model.Stopping); ok {
		m.step(t, model.Started{At: m.now, Task: id, Attempt: m.tries[id]})
	}
}

func (m *machine) exit(t *rapid.T) {
	id, ok := m.any(t, model.Launching, model.Running, model.Stopping, model.Suspending, model.Suspended, model.Resuming)
	if !ok {
		return
	}
	m.step(t, model.Exited{
		At: m.now, Task: id, Attempt: m.tries[id],
		Class: rapid.SampledFrom([]model.Class{
			model.ExitOK, model.ExitProgram, model.ExitGPUOOM, model.ExitGPUOOM, model.ExitGPUOOM, model.ExitSuspectedOOM, model.ExitHostOOM, model.ExitInfrastructure, model.ExitEvicted, model.ExitMPSFault, model.ExitCannotStart, model.ExitStopped, "?",
		}).Draw(t, "class"),
		HostPeak: anyMemory(t),
		Peak:     anyMemory(t) / rapid.SampledFrom([]units.Bytes{1, 4}).Draw(t, "part"), Demand: rapid.SampledFrom([]units.Bytes{0, 0, 3 * units.GiB, 17 * units.GiB, 60 * units.GiB}).Draw(t, "demand"),
	})
}

// unstarted fails the start of a task, or of all that are being started, through a fault of the
// engine, a GPU or its namespace.
func (m *machine) unstarted(t *rapid.T) {
	scope := rapid.SampledFrom([]model.BreakerScope{model.ScopeEngine, model.ScopeGPU, model.ScopeNamespace, model.ScopeUnknown, model.ScopeUnknown}).Draw(t, "scope")
	all := rapid.Bool().Draw(t, "all")
	for _, task := range m.s.Tasks() {
		if task.Phase != model.Launching && (task.Phase != model.Stopping || task.Last().Started != 0) {
			continue
		}
		f := model.Fault{Scope: scope, Cause: "broken"}
		if scope == model.ScopeGPU && len(task.Last().Grants) > 0 && rapid.Bool().Draw(t, "named") {
			f.GPUs = []model.GPUID{task.Last().Grants[0].GPU}
		}
		m.step(t, model.Exited{At: m.now, Task: task.ID, Attempt: m.tries[task.ID], Class: model.ExitInfrastructure, Code: 125, Message: "not started", Fault: &f})
		if !all {
			return
		}
	}
}

// canary ends the canary, even if none was requested.
func (m *machine) canary(t *rapid.T) {
	ev := model.CanaryEnded{At: m.now, Outcome: rapid.SampledFrom([]model.CanaryOutcome{model.CanaryStarted, model.CanaryFailed, model.CanaryMissing, "?"}).Draw(t, "outcome")}
	if rapid.Bool().Draw(t, "with a fault") {
		ev.Fault = &model.Fault{Scope: model.ScopeUnknown, Cause: "it fails too"}
	}
	m.step(t, ev)
}

func (m *machine) cancel(t *rapid.T) {
	if m.last > 0 {
		m.step(t, model.Cancel{At: m.now, Task: model.TaskID(rapid.Int64Range(1, int64(m.last)).Draw(t, "task"))})
	}
}

func (m *machine) engine(t *rapid.T) {
	m.up = rapid.Bool().Draw(t, "up")
	m.step(t, model.EngineChanged{At: m.now, Up: m.up})
}

func (m *machine) gpus(t *rapid.T) {
	var some []model.GPUInfo
	for _, g := range m.all {
		if rapid.IntRange(0, 3).Draw(t, "gone") > 0 {
			g.Sharing = rapid.SampledFrom([]model.Sharing{model.SharingMPS, model.SharingUsers, model.SharingTurns, model.SharingAlone}).Draw(t, "sharing")
			some = append(some, g)
		}
	}
	m.find(t, some)
}

func (m *machine) find(t *rapid.T, gpus []model.GPUInfo) {
	gpus = anyBoots(t, gpus)
	known := map[model.GPUID]bool{}
	for _, g := range m.s.GPUs() {
		known[g.ID] = true
	}
	m.there = map[model.GPUID]bool{}
	for _, g := range gpus {
		m.there[g.ID] = true
		if !known[g.ID] { // no sample of it yet
			m.alien[g.ID], m.used[g.ID], m.fault[g.ID] = 0, 0, false
		}
	}
	m.step(t, model.GPUsFound{At: m.now, GPUs: gpus})
}

func (m *machine) configure(t *rapid.T) {
	m.opt = anyOptions(t)
	if now := max(m.now, m.s.Now()); m.launched > 0 {
		m.spacing = min(m.spacing, now.Add(m.opt.Interval).Sub(m.launched))
	}
	m.step(t, model.Configured{At: m.now, Options: m.opt, Format: model.DecisionFormat})
}

// pass advances the time without a timer, or sometimes sets the clock back.
func (m *machine) pass(t *rapid.T) {
	d := rapid.SampledFrom([]time.Duration{1, time.Second, 10 * time.Second, time.Minute, time.Hour, -time.Minute}).Draw(t, "time")
	m.now = max(1, m.now.Add(d))
}

func (m *machine) wake(t *rapid.T) {
	if m.alarm != 0 {
		m.now = max(m.now, m.alarm)
		m.step(t, model.TimerFired{At: m.now})
	}
}

// again repeats an event of the past, unchanged or as if it happened now. It leaves out events
// that would also change the machine's accounts.
func (m *machine) again(t *rapid.T) {
	ev := rapid.SampledFrom(m.past).Draw(t, "event")
	switch e := ev.(type) {
	case model.TaskSubmitted, model.Estimated, model.LaunchAccepted, model.Started, model.Exited, model.Cancel, model.TimerFired:
		m.step(t, e)
	}
}

func (m *machine) restart(t *rapid.T) { m.s = reload(t, m.s) }

// paced reports the speeds of some tasks according to their output; some reports are about
// attempts that have ended, or are implausible.
func (m *machine) paced(t *rapid.T) {
	var all []model.Throughput
	for range rapid.IntRange(0, 3).Draw(t, "tasks") {
		p := model.Throughput{
			Task: model.TaskID(rapid.Int64Range(1, int64(m.last)+1).Draw(t, "task")), Rate: anyRate.Draw(t, "rate"), Error: anyRate.Draw(t, "error"),
			Since: m.now.Add(-rapid.SampledFrom([]time.Duration{0, time.Second, time.Minute, time.Hour, -time.Hour}).Draw(t, "since")),
			Steps: rapid.Bool().Draw(t, "steps"), Share: anyRate.Draw(t, "share"),
		}
		if id, ok := m.any(t, model.Running); ok && rapid.IntRange(0, 3).Draw(t, "running") > 0 {
			p.Task = id
		}
		p.Attempt = m.tries[p.Task] - rapid.SampledFrom([]int{0, 0, 0, 1}).Draw(t, "attempts ago")
		all = append(all, p)
	}
	m.noPace(t, all)
	m.step(t, model.ThroughputReported{At: m.now, Tasks: all})
}

// anyRate draws a rate, an error or a share, most of them possible.
var anyRate = rapid.SampledFrom([]float64{0, 0.01, 0.3, 0.5, 0.6, 1, 1, 2, 30, -1, math.MaxFloat64, math.SmallestNonzeroFloat64})

// noPace checks that a rate that a journal cannot store (NaN or infinite) changes only the
// time.
func (m *machine) noPace(t *rapid.T, all []model.Throughput) {
	same, none := m.s.Clone(), m.s.Clone()
	bad := slices.Clone(all)
	for i := range bad {
		bad[i].Rate = rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1), -1}).Draw(t, "no rate")
		bad[i].Share, bad[i].Error = math.NaN(), math.Inf(1)
	}
	same.Step(model.ThroughputReported{At: m.now})
	none.Step(model.ThroughputReported{At: m.now, Tasks: bad})
	if got, want := encode(t, none), encode(t, same); got != want {
		t.Fatalf("%+v led to\n%s\nand no rates to\n%s", bad, got, want)
	}
}
