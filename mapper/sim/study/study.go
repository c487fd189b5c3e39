package study

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"carma/configs/servers"
	"carma/configs/traces"
	"carma/estimator/booking"
	"carma/mapper"
	"carma/mapper/model"
	"carma/mapper/sim"
)

// Study replays every trace under every row, in virtual time. Equal input gives equal
// output.
type Study struct {
	Traces  []traces.Trace
	Server  servers.Server
	Rows    []Row
	StartUp time.Duration // from a launch until the container runs
	Sharing sim.Sharing
	Coarse  bool // as in [Conditions]
	// Suspending, Urgent and Drain are as in [Conditions].
	Suspending sim.Suspending
	Urgent     float64
	Drain      sim.Drain
	// Checkpoint is the training time after which each task saves its state, or 0 for
	// never.
	Checkpoint time.Duration
	// Know is the knowledge of tasks before they run; empty means all. Distinct is set if no
	// task is known to do the same work as another.
	Know     Know
	Distinct bool
	// Truth contains the differences between the modelled world and the policies'
	// assumptions.
	Truth sim.Truth
	// Timeline records the timelines of the outcomes.
	Timeline bool
	Progress Progress // may be nil
}

// Progress is called when a task of a trace has ended.
type Progress func(trace, policy string, ended, tasks int)

// StartUp is about the time in which Docker starts a container with a GPU.
const StartUp = time.Second

// ReadTraces reads traces by their names or files.
func ReadTraces(names []string) ([]traces.Trace, error) {
	var list []traces.Trace
	for _, name := range names {
		t, err := traces.Read(name)
		if err != nil {
			return nil, wrongf("", "%v", err)
		}
		list = append(list, t)
	}
	return list, nil
}

// Server returns a simulated server, sim:NAME or sim:FILE, with count GPUs, or with all
// its GPUs if count is 0. It uses the server's first GPUs and, if it has too few, copies
// of the last one.
func Server(gpus string, count int) (servers.Server, error) {
	name, ok := strings.CutPrefix(gpus, "sim:")
	if !ok {
		return servers.Server{}, wrongf("write for example --gpus sim:"+servers.Default, "--gpus: a replay in virtual time needs a simulated server, not %q", gpus)
	}
	s, err := servers.Find(cmp.Or(name, servers.Default))
	if err != nil {
		return servers.Server{}, wrongf("", "--gpus: %v", err)
	}
	if count == 0 {
		return s, nil
	}
	if count > MaxGPUs {
		return servers.Server{}, wrongf("", "--gpu-count: %d is more than %d", count, MaxGPUs)
	}
	s.GPUs = slices.Clone(s.GPUs[:min(count, len(s.GPUs))])
	for len(s.GPUs) < count {
		g := s.GPUs[len(s.GPUs)-1]
		g.Index = len(s.GPUs)
		g.UUID = fmt.Sprintf("%s-%d", s.Name, g.Index)
		s.GPUs = append(s.GPUs, g)
	}
	return s, nil
}

// Run replays all traces under all rows, one after the other.
func (s *Study) Run() ([]Replayed, error) {
	var all []Replayed
	for _, t := range s.Traces {
		done := Replayed{Trace: t}
		player := s.player(t)
		for _, row := range s.Rows {
			o, err := player.play(row)
			if err != nil {
				return nil, err
			}
			done.Outcomes = append(done.Outcomes, o)
		}
		if done.Reference = done.Under(ReferencePreset); done.Reference == nil {
			o, err := player.play(mustPreset(ReferencePreset))
			if err != nil {
				return nil, err
			}
			done.Reference = &o
		}
		all = append(all, done)
	}
	return all, nil
}

// player replays one trace under several rows.
type player struct {
	study *Study
	trace traces.Trace
	tasks map[string][]sim.Task // by estimator
	whole map[string][]WholeGPU // by estimator
}

func (s *Study) player(t traces.Trace) *player {
	return &player{s, t, map[string][]sim.Task{}, map[string][]WholeGPU{}}
}

func (p *player) play(row Row) (Outcome, error) {
	s := p.study
	maker := taskMaker{
		catalogue: booking.NewCatalogue(), method: row.Estimator, checkpoint: s.Checkpoint,
		know: s.Know, distinct: s.Distinct, asOriginal: row.Preset, most: s.Server.GPUs[0].Memory - row.Options.Headroom,
	}
	for _, g := range s.Server.GPUs {
		maker.most = min(maker.most, g.Memory-row.Options.Headroom)
	}
	key := fmt.Sprint(maker.method, maker.asOriginal, maker.most)
	if p.tasks[key] == nil {
		tasks, err := maker.tasks(p.trace)
		if err != nil {
			return Outcome{}, err
		}
		p.tasks[key], p.whole[key] = urge(tasks, s.Urgent, s.worldOf(p.trace.Name)), maker.whole
	}
	r, err := sim.Run(sim.Config{
		Options: row.Options, GPUs: GPUs(s.Server), StartUp: s.StartUp, Score: row.Score, Sharing: s.Sharing, Coarse: s.Coarse, Truth: s.worldOf(p.trace.Name), Timeline: s.Timeline, Suspending: s.Suspending, Drain: s.Drain,
		Observe: s.observe(p.trace.Name, row.Label, len(p.trace.Tasks)),
	}, p.tasks[key])
	if err != nil {
		return Outcome{}, fmt.Errorf("%s, policy %s: %w", p.trace.Name, row.Label, err)
	}
	return Outcome{row.Label, row, r, p.whole[key]}, nil
}

// observe returns a function that counts the tasks that end, or nil.
func (s *Study) observe(trace, policy string, tasks int) func(*mapper.State, model.Event, []model.Decision) {
	if s.Progress == nil {
		return nil
	}
	ended := 0
	return func(_ *mapper.State, _ model.Event, decisions []model.Decision) {
		for _, d := range decisions {
			if _, ok := d.(model.Finish); ok {
				ended++
				s.Progress(trace, policy, ended, tasks)
			}
		}
	}
}

// GPUs returns the modelled GPUs of a server.
func GPUs(s servers.Server) []sim.GPU {
	gpus := make([]sim.GPU, len(s.GPUs))
	for i, g := range s.GPUs {
		gpus[i] = sim.GPU{
			ID: model.GPUID(g.UUID), Node: g.Machine, Index: g.Index, Model: g.Model, Memory: g.Memory,
			IdlePower: g.IdlePower, PeakPower: g.PeakPower, Speed: g.Speed,
		}
	}
	return gpus
}
