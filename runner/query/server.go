package query

import (
	"cmp"
	"context"
	"slices"

	"carma/internal/units"
	"carma/mapper"
	"carma/mapper/model"
	"carma/mapper/words"
	"carma/runner/access"
	"carma/runner/api"
	"carma/runner/clock"
	"carma/runner/control"
	"carma/runner/energy"
	"carma/runner/engine"
	"carma/runner/helpers"
	"carma/runner/inventory"
	"carma/runner/loop"
	"carma/runner/machine"
	"carma/runner/monitor"
	"carma/runner/problems"
	"carma/runner/record"
	"carma/runner/retention"
	"carma/runner/storedoutput"
)

// ServerConfig has the parts that Server works with.
type ServerConfig struct {
	Loop    *loop.Loop
	Records *record.Store
	Authz   *access.Authorizer
	GPUs    *inventory.GPUs
	Monitor *monitor.Monitor
	Energy  *energy.Accounts
	Engine  *engine.Health
	Trouble *problems.Current
	Output  *storedoutput.Health
	Helpers *helpers.Manager
	Clock   *clock.Clock
	// Daemon holds what does not change while the daemon runs.
	Daemon   api.Info
	Keep     func() retention.Keep
	Draining func() bool
}

// Server answers questions about the daemon, its GPUs and its machine. Safe for concurrent
// use.
type Server struct{ c ServerConfig }

// NewServer returns a Server that reads from the parts in c.
func NewServer(c ServerConfig) *Server { return &Server{c: c} }

// Info describes the daemon.
func (r *Server) Info(ctx context.Context) (api.Info, error) {
	info, keep := r.c.Daemon, r.c.Keep()
	info.Output, info.KeepTasks, info.KeepTasksFor = r.c.Output.View(), keep.Tasks, keep.TasksFor
	info.Now, info.Speed, info.Engine = r.c.Clock.Time(), r.c.Clock.Speed(), r.c.Engine.Version()
	_, info.EngineDown = r.c.Engine.Status()
	err := r.c.Loop.Look(ctx, func(s *mapper.State) {
		info.Policy, info.Queued = s.Options().Policy, s.QueueLen()
		info.Running, info.Paused = s.Placed(), control.CordonView(s.Paused())
		all, waiting := s.Suspended()
		info.Suspended, info.Queued = len(all), info.Queued-waiting
		info.Held = s.Unfinished() - info.Queued - info.Running - info.Suspended
	})
	info.Energy = r.c.Energy.View()
	info.Trouble, _ = r.c.Trouble.Now() // as the loop last wrote it
	info.Draining = r.c.Draining()
	if err == nil {
		info.Host, err = r.Host(ctx)
	}
	if err != nil {
		return info, err
	}
	return r.c.Authz.Info(ctx, info, r.c.Records)
}

// ListGPUs returns the ledger with the monitor's last readings.
func (r *Server) ListGPUs(ctx context.Context) ([]api.GPU, error) {
	var pages []model.GPU
	held := map[model.GPUID]model.TaskID{}
	var reserved []model.Reservation
	suspended := map[model.GPUID][]api.Away{}
	var headroom units.Bytes
	err := r.c.Loop.Look(ctx, func(s *mapper.State) {
		pages, headroom = s.GPUs(), s.Options().Headroom
		for _, g := range pages {
			held[g.ID] = s.ReservedFor(g.ID)
		}
		reserved = s.Reservations()
		all, _ := s.Suspended()
		for _, t := range all {
			for _, had := range t.Suspension.From {
				suspended[had.GPU] = append(suspended[had.GPU], r.suspendedView(t))
			}
		}
	})
	filter := r.c.Authz.Filter(ctx) // names of tasks that the caller may not know of are left out
	for id := range suspended {
		for i := range suspended[id] {
			if rec, _ := r.c.Records.Get(model.TaskID(suspended[id][i].Task)); rec != nil && !filter.Shows(rec) {
				suspended[id][i].Name = ""
			}
		}
	}
	out := make([]api.GPU, 0, len(pages))
	for _, g := range pages {
		v := api.GPU{
			GPURef: api.GPURef{Index: g.Index, UUID: string(g.ID)}, Model: g.Model,
			Capacity: int64(g.Capacity), Reserved: int64(g.Reserved), Used: int64(g.Used), Foreign: int64(g.OtherProcesses),
			Headroom: int64(headroom), SMACT: g.SMACT, SMOCC: g.SMOCC, DRAMA: g.DRAMA, Fault: g.FaultReason(), FaultLasts: g.Persistent != nil,
			HeldFor: int64(held[g.ID]), Tasks: []api.Resident{}, Closed: control.CordonView(g.Cordon), NVLink: g.Link, NUMANode: g.Socket,
			Suspend: string(g.Suspend), Suspended: suspended[g.ID],
		}
		for _, res := range reserved {
			if slices.Contains(res.GPUs, g.ID) {
				v.Reservations = append(v.Reservations, control.ReservationView(res, r.c.GPUs))
			}
		}
		if g.Missing {
			v.Fault = words.Missing
		}
		v.Parent, v.Sharing = r.c.GPUs.Devices()[g.ID].Parent, cmp.Or(string(g.Sharing), "mps")
		if s, ok := r.c.Monitor.Reading(v.UUID); ok {
			v.PowerW, v.EnergyJ, v.TemperatureC, v.ECCErrors = s.PowerW, s.EnergyJ, s.TemperatureC, s.ECCErrors
			v.Metrics, v.Coarse, v.Warnings = s.Metrics, s.Coarse, s.Warnings
		}
		for _, p := range g.Residents {
			name := ""
			if rec, _ := r.c.Records.Get(p.Task); rec != nil && filter.Shows(rec) {
				name = rec.Name
			}
			v.Tasks = append(v.Tasks, api.Resident{
				Task: int64(p.Task), Name: name, Grant: int64(p.Grant), Used: int64(p.Used), Peak: int64(p.Peak), Alone: p.Exclusive,
			})
		}
		out = append(out, v)
	}
	return out, err
}

// suspendedView returns the API form of a suspended task for carma gpus.
func (r *Server) suspendedView(t *model.Task) api.Away {
	v := api.Away{Task: int64(t.ID), Host: int64(t.Suspension.Host), Since: t.Suspension.Since.Time()}
	if rec, _ := r.c.Records.Get(t.ID); rec != nil {
		v.Name = rec.Name
	}
	return v
}

// LiveInfo returns [Server.Info] without the parts that take long to count.
func (r *Server) LiveInfo(ctx context.Context) (api.LiveInfo, error) {
	v := api.LiveInfo{
		Version: r.c.Daemon.Version, Source: r.c.Daemon.Source, Simulated: r.c.Daemon.Simulated, Speed: r.c.Clock.Speed(), Draining: r.c.Draining(),
	}
	err := r.c.Loop.Look(ctx, func(s *mapper.State) {
		v.Policy, v.Queued, v.Running, v.Paused = s.Options().Policy, s.QueueLen(), s.Placed(), control.CordonView(s.Paused())
		all, waiting := s.Suspended()
		v.Suspended, v.Queued = len(all), v.Queued-waiting
		v.Held = s.Unfinished() - v.Queued - v.Running - v.Suspended
	})
	v.Trouble, _ = r.c.Trouble.Now()
	return v, err
}

// Host returns the API form of the machine's memory and processors, or nil if nothing
// is allocated.
func (r *Server) Host(ctx context.Context) (*api.Host, error) {
	var pages []model.Host
	err := r.c.Loop.Look(ctx, func(s *mapper.State) { pages = s.Hosts() })
	i := slices.IndexFunc(pages, func(h model.Host) bool { return h.Known })
	if err != nil || i < 0 {
		return nil, err
	}
	owners := r.c.Helpers.Owners()
	return machine.View(pages[i], func(id model.TaskID) string {
		if rec, _ := r.c.Records.Get(id); rec != nil {
			return rec.Name
		}
		return ""
	}, func(suite string) string { return owners[suite].Name }), nil
}
