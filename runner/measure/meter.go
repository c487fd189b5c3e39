package measure

import (
	"cmp"
	"context"
	"slices"
	"time"

	"carma/internal/units"
	"carma/mapper"
	"carma/mapper/fairshare"
	"carma/mapper/model"
	"carma/runner/clock"
	"carma/runner/energy"
	"carma/runner/engine"
	"carma/runner/gpu"
	"carma/runner/health"
	"carma/runner/journal"
	"carma/runner/loop"
	"carma/runner/metrics"
	"carma/runner/monitor"
	"carma/runner/problems"
	"carma/runner/query"
	"carma/runner/record"
	"carma/runner/rights"
	"carma/runner/waitreason"
)

// unlooked is the reason shown for pending tasks for which a scrape has not asked the
// mapper.
const unlooked = "not-looked-at"

// MeterConfig has the parts that a Meter works with.
type MeterConfig struct {
	Tasks    *query.Tasks
	Loop     *loop.Loop
	Records  *record.Store
	Journal  *journal.Journal
	Monitor  *monitor.Monitor
	Energy   *energy.Accounts
	Engine   *engine.Health
	Trouble  *problems.Current
	Health   *health.Checks
	Reasons  *waitreason.Cache // only the loop uses it
	Clock    *clock.Clock
	Draining func() bool
}

// Meter reads the figures of tasks, users, GPUs and the daemon. Safe for concurrent use.
type Meter struct{ c MeterConfig }

// NewMeter returns a meter that reads from the parts in c.
func NewMeter(c MeterConfig) *Meter { return &Meter{c: c} }

// reading is the part of the state that a scrape reads in the loop.
type reading struct {
	gpus      []model.GPU
	headroom  units.Bytes
	kept      map[model.GPUID]bool
	accounts  []fairshare.Account
	placed    map[model.TaskID]query.InState
	reasons   map[model.TaskID]model.ReasonCode
	suspended map[model.GPUID]int
	paused    bool
}

// State returns the state for one page of metrics. It asks the loop once.
func (m *Meter) State(ctx context.Context) (metrics.State, error) {
	recs := m.c.Records.Newest(0, maxMeasured, func(rec *record.Record) bool { return !rec.Task.Phase.Finished() })
	var placed, waiting []*record.Record
	s := metrics.State{Now: m.c.Clock.Time()}
	for _, rec := range recs {
		switch p := rec.Task.Phase; {
		case p.Placed():
			placed = append(placed, rec)
		case p == model.Queued || p == model.Recovering:
			waiting = append(waiting, rec)
		case p == model.Suspended:
			s.Away++
		default:
			s.Held++
		}
	}
	slices.Reverse(waiting) // the oldest first: their reasons are computed
	g := reading{kept: map[model.GPUID]bool{}, placed: map[model.TaskID]query.InState{}, reasons: map[model.TaskID]model.ReasonCode{}, suspended: map[model.GPUID]int{}}
	if err := m.c.Loop.Look(ctx, func(s *mapper.State) { m.take(s, &g, placed, waiting) }); err != nil {
		return s, err
	}
	for i := range g.gpus {
		s.GPUs = append(s.GPUs, m.gpuFigures(&g.gpus[i], &g))
	}
	s.Queue = queueFigures(waiting, g.reasons, m.c.Clock.Now())
	for _, rec := range placed {
		s.Tasks = append(s.Tasks, m.taskFigures(rec, &g))
	}
	s.Users, s.IdleJ = m.userFigures(g.accounts)
	s.EngineUp, _ = m.c.Engine.Status()
	s.Ready, s.Paused, s.Draining = len(m.c.Health.Unready()) == 0, g.paused, m.c.Draining()
	s.Troubles = map[string]int{}
	all, _ := m.c.Trouble.Now()
	for _, x := range all {
		s.Troubles[x.Scope]++
	}
	s.Journal = metrics.Journal{Bytes: m.c.Journal.Size(), Full: m.c.Loop.Full() != ""}
	if at, err := m.c.Journal.SnapshotAt(); err == nil && at > 0 {
		s.Journal.Snapshot = units.Instant(at).Time()
	}
	return s, nil
}

// maxMeasured is the largest number of unfinished tasks that one page counts.
const maxMeasured = 100_000

// take reads the state for a page.
func (m *Meter) take(s *mapper.State, g *reading, placed, waiting []*record.Record) {
	g.gpus, g.headroom, g.accounts, g.paused = s.GPUs(), s.Options().Headroom, s.Accounts(), s.Paused() != nil
	for i := range g.gpus {
		g.kept[g.gpus[i].ID] = s.ReservedFor(g.gpus[i].ID) != 0
	}
	all, _ := s.Suspended()
	for _, t := range all {
		for _, had := range t.Suspension.From {
			g.suspended[had.GPU]++
		}
	}
	for _, rec := range placed {
		g.placed[rec.ID()] = query.Placed(s, rec.ID())
	}
	for _, rec := range waiting[:min(waitreason.AtMost, len(waiting))] { // further tasks get the reason unlooked
		if x := m.c.Reasons.Recent(s, rec.ID(), time.Now()); x.Known {
			g.reasons[rec.ID()] = x.Code
		}
	}
}

func (m *Meter) gpuFigures(g *model.GPU, of *reading) metrics.GPU {
	v := metrics.GPU{
		Index: g.Index, UUID: string(g.ID), Model: g.Model, Sharing: cmp.Or(string(g.Sharing), "mps"),
		Total: int64(g.Capacity), Reserved: int64(g.Reserved), Used: int64(g.Used), Foreign: int64(g.OtherProcesses), Headroom: int64(of.headroom),
		SMACT: g.SMACT, SMOCC: g.SMOCC, DRAMA: g.DRAMA, Fault: g.FaultReason() != "" || g.Missing, Drained: g.Cordon != nil,
		HeldFor: of.kept[g.ID], Tasks: len(g.Residents), Suspended: of.suspended[g.ID],
	}
	if s, ok := m.c.Monitor.Reading(v.UUID); ok {
		v.PowerW, v.EnergyJ, v.TemperatureC, v.ECCErrors = s.PowerW, s.EnergyJ, s.TemperatureC, s.ECCErrors
		v.Known, v.Coarse = s.Metrics != gpu.MetricsNone, s.Coarse
	}
	return v
}

// queueFigures counts the waiting tasks by priority and reason.
func queueFigures(waiting []*record.Record, reasons map[model.TaskID]model.ReasonCode, now units.Instant) (all []metrics.Queue) {
	for _, rec := range waiting {
		t := &rec.Task
		priority, reason := t.Priority.String(), cmp.Or(string(reasons[t.ID]), unlooked)
		i := slices.IndexFunc(all, func(q metrics.Queue) bool { return q.Priority == priority && q.Reason == reason })
		if i < 0 {
			all = append(all, metrics.Queue{Priority: priority, Reason: reason})
			i = len(all) - 1
		}
		all[i].Tasks++
		all[i].Oldest = max(all[i].Oldest, now.Sub(cmp.Or(t.QueuedAt, t.Submitted)))
	}
	return all
}

func (m *Meter) taskFigures(rec *record.Record, of *reading) metrics.Task {
	t, v := &rec.Task, m.c.Tasks.Present(context.Background(), rec, of.placed[rec.ID()], rights.ListEnvironment)
	out := metrics.Task{
		ID: v.ID, Name: v.Name, User: v.User, Phase: v.Phase, Estimate: v.Estimate.Memory, Progress: -1,
		Started: v.Started, Idle: v.Idle != nil, EnergyJ: v.EnergyJ,
	}
	if last := t.Last(); last != nil {
		out.Attempts = last.N
	}
	if p := v.Progress; p != nil {
		if p.Share > 0 {
			out.Progress = p.Share
		}
		if p.Slowdown != nil {
			out.Slowdown = p.Slowdown.Value
		}
	}
	for i := range of.gpus {
		for _, r := range of.gpus[i].Residents {
			if r.Task == t.ID {
				out.On = append(out.On, metrics.Place{UUID: string(of.gpus[i].ID), Grant: int64(r.Grant), Used: int64(r.Used), Peak: int64(r.Peak)})
			}
		}
	}
	return out
}

// userFigures returns the current and past use of each user.
func (m *Meter) userFigures(accounts []fairshare.Account) ([]metrics.User, float64) {
	joules, held, idle := m.c.Energy.Sums(m.c.Clock.Now())
	users := map[string]*metrics.User{}
	of := func(name string) *metrics.User {
		if users[name] == nil {
			users[name] = &metrics.User{Name: name}
		}
		return users[name]
	}
	for _, a := range accounts {
		if a.Group {
			continue
		}
		u := of(a.Name)
		u.Running, u.Waiting, u.GPUs, u.Memory, u.Usage, u.Share = a.Tasks, a.Waiting, a.GPUs, int64(a.Memory), a.Use, a.Share
	}
	for name, j := range joules {
		of(name).EnergyJ = j
	}
	for name, seconds := range held {
		of(name).GPUSeconds = seconds
	}
	all := make([]metrics.User, 0, len(users))
	for _, u := range users {
		all = append(all, *u)
	}
	slices.SortFunc(all, func(a, b metrics.User) int { return cmp.Compare(a.Name, b.Name) })
	return all, idle
}
