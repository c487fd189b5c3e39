package runner

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"carma/internal/units"
	"carma/mapper"
	"carma/mapper/fairshare"
	"carma/mapper/model"
	"carma/runner/gpu"
	"carma/runner/metrics"
	"carma/runner/query"
	"carma/runner/record"
	"carma/runner/rights"
	"carma/runner/waitreason"
)

// unlooked is the reason shown for pending tasks for which a scrape has not asked the
// mapper.
const unlooked = "not-looked-at"

// metricsSnapshot is the part of the state that a scrape reads in the loop.
type metricsSnapshot struct {
	gpus     []model.GPU
	headroom units.Bytes
	kept     map[model.GPUID]bool
	accounts []fairshare.Account
	placed   map[model.TaskID]query.InState
	reasons  map[model.TaskID]model.ReasonCode
	away     map[model.GPUID]int
	paused   bool
}

// measure returns the state for one page of metrics. It asks the loop once.
func (r *Runner) measure(ctx context.Context) (metrics.State, error) {
	recs := r.records.Newest(0, maxMeasured, func(rec *record.Record) bool { return !rec.Task.Phase.Finished() })
	var placed, waiting []*record.Record
	s := metrics.State{Now: r.Clock.Time()}
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
	g := metricsSnapshot{kept: map[model.GPUID]bool{}, placed: map[model.TaskID]query.InState{}, reasons: map[model.TaskID]model.ReasonCode{}, away: map[model.GPUID]int{}}
	if err := r.loop.Look(ctx, func(s *mapper.State) { r.takeMetrics(s, &g, placed, waiting) }); err != nil {
		return s, err
	}
	for i := range g.gpus {
		s.GPUs = append(s.GPUs, r.gpuFigures(&g.gpus[i], &g))
	}
	s.Queue = queueFigures(waiting, g.reasons, r.Clock.Now())
	for _, rec := range placed {
		s.Tasks = append(s.Tasks, r.taskFigures(rec, &g))
	}
	s.Users, s.IdleJ = r.userFigures(g.accounts)
	s.EngineUp, _ = r.engine.Status()
	s.Ready, s.Paused, s.Draining = len(r.unready()) == 0, g.paused, r.draining.Load()
	s.Troubles = map[string]int{}
	all, _ := r.trouble.Now()
	for _, x := range all {
		s.Troubles[x.Scope]++
	}
	s.Journal = metrics.Journal{Bytes: r.Journal.Size(), Full: r.loop.Full() != ""}
	if at, err := r.Journal.SnapshotAt(); err == nil && at > 0 {
		s.Journal.Snapshot = units.Instant(at).Time()
	}
	return s, nil
}

// maxMeasured is the largest number of unfinished tasks that one page counts.
const maxMeasured = 100_000

// takeMetrics reads the state for a page.
func (r *Runner) takeMetrics(s *mapper.State, g *metricsSnapshot, placed, waiting []*record.Record) {
	g.gpus, g.headroom, g.accounts, g.paused = s.GPUs(), s.Options().Headroom, s.Accounts(), s.Paused() != nil
	for i := range g.gpus {
		g.kept[g.gpus[i].ID] = s.ReservedFor(g.gpus[i].ID) != 0
	}
	suspended, _ := s.Suspended()
	for _, t := range suspended {
		for _, had := range t.Suspension.From {
			g.away[had.GPU]++
		}
	}
	for _, rec := range placed {
		g.placed[rec.ID()] = query.Placed(s, rec.ID())
	}
	for _, rec := range waiting[:min(waitreason.AtMost, len(waiting))] { // further tasks get the reason unlooked
		if x := r.explained.Recent(s, rec.ID(), time.Now()); x.Known {
			g.reasons[rec.ID()] = x.Code
		}
	}
}

func (r *Runner) gpuFigures(g *model.GPU, of *metricsSnapshot) metrics.GPU {
	v := metrics.GPU{
		Index: g.Index, UUID: string(g.ID), Model: g.Model, Sharing: cmp.Or(string(g.Sharing), "mps"),
		Total: int64(g.Capacity), Reserved: int64(g.Reserved), Used: int64(g.Used), Foreign: int64(g.OtherProcesses), Headroom: int64(of.headroom),
		SMACT: g.SMACT, SMOCC: g.SMOCC, DRAMA: g.DRAMA, Fault: g.FaultReason() != "" || g.Missing, Drained: g.Cordon != nil,
		HeldFor: of.kept[g.ID], Tasks: len(g.Residents), Suspended: of.away[g.ID],
	}
	if s, ok := r.monitor.Reading(v.UUID); ok {
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

func (r *Runner) taskFigures(rec *record.Record, of *metricsSnapshot) metrics.Task {
	t, v := &rec.Task, r.query.Present(context.Background(), rec, of.placed[rec.ID()], rights.ListEnvironment)
	out := metrics.Task{
		ID: v.ID, Name: v.Name, User: v.User, Phase: v.Phase, Estimate: v.Estimate.Memory, Attempts: tries(t), Progress: -1,
		Started: v.Started, Idle: v.Idle != nil, EnergyJ: v.EnergyJ,
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
		for _, m := range of.gpus[i].Residents {
			if m.Task == t.ID {
				out.On = append(out.On, metrics.Place{UUID: string(of.gpus[i].ID), Grant: int64(m.Grant), Used: int64(m.Used), Peak: int64(m.Peak)})
			}
		}
	}
	return out
}

// userFigures returns the current and past use of each user.
func (r *Runner) userFigures(accounts []fairshare.Account) ([]metrics.User, float64) {
	joules, held, idle := r.energy.Sums(r.Clock.Now())
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

// MetricsPage returns the page of metrics, with or without figures of single tasks and
// users.
func (r *Runner) MetricsPage(names metrics.Names) http.Handler { return r.pages.Handler(names) }
