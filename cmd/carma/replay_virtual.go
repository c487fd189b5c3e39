package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"carma/configs/servers"
	"carma/configs/traces"
	"carma/estimator/booking"
	"carma/mapper"
	"carma/mapper/sim"
)

// virtualReplay is a replay in virtual time: every trace under every row.
type virtualReplay struct {
	console *console
	traces  []traces.Trace
	server  servers.Server
	rows    []replayRow
	startUp time.Duration
	bounds  *bounds // nil: none
	record  bool    // keep what the bounds came to
	files   *replayFiles
	sharing sim.Sharing
	// checkpoint is of every task; 0: none.
	checkpoint time.Duration
}

// defaultStartUp is about what Docker takes to start a container with a GPU.
const defaultStartUp = time.Second

// virtualFlags are the flags of a replay in virtual time, as they were typed.
type virtualFlags struct {
	rowFlags
	gpus    string
	count   int
	startUp time.Duration
	check   string // file of bounds; empty: none
	record  bool
	sharing string
	// checkpoint is after how much work tasks save it; 0: never.
	checkpoint time.Duration
}

// newVirtualReplay checks the command line and reads the traces.
func (a *app) newVirtualReplay(f virtualFlags, args []string) (*virtualReplay, error) {
	v := &virtualReplay{console: a.console(), startUp: f.startUp, record: f.record}
	var err error
	if f.check != "" {
		if v.bounds, err = readBounds(f.check); err != nil {
			return nil, err
		}
		f.count = cmp.Or(f.count, v.bounds.count)
	} else if f.record {
		return nil, usagef("write for example --check test/replay-bounds.yaml --record", "--record keeps values in the file of --check")
	}
	if v.startUp < 0 || v.startUp > time.Hour {
		return nil, usagef("", "--start-up: %s is not between 0 and 1h", v.startUp)
	}
	if v.checkpoint = f.checkpoint; v.checkpoint < 0 {
		return nil, usagef("write for example 10m", "--checkpoint: %s is negative", v.checkpoint)
	}
	if v.bounds != nil && f.policies == "" && f.estimator == estimators[0] {
		v.rows, err = v.bounds.rows(f.rowFlags)
	} else {
		v.rows, err = f.rows()
	}
	if err != nil {
		return nil, err
	}
	if v.sharing, err = sim.ParseSharing(f.sharing); err != nil {
		return nil, usagef("", "--sharing: %v", err)
	}
	if v.server, err = simulatedServer(f.gpus, f.count); err != nil {
		return nil, err
	}
	if v.bounds != nil && len(args) == 0 {
		v.traces, err = v.bounds.read()
	} else {
		v.traces, err = readTraces(args)
	}
	if err == nil && v.bounds != nil {
		err = v.bounds.fit(v.traces, v.rows)
	}
	return v, err
}

func readTraces(args []string) ([]traces.Trace, error) {
	var list []traces.Trace
	for _, arg := range args {
		t, err := traces.Read(arg)
		if err != nil {
			return nil, usagef("", "%v", err)
		}
		list = append(list, t)
	}
	return list, nil
}

// simulatedServer is the server of --gpus, with as many GPUs as asked for: the
// first ones, and where there are not enough more like the last.
func simulatedServer(gpus string, count int) (servers.Server, error) {
	name, ok := strings.CutPrefix(gpus, "sim:")
	if !ok {
		return servers.Server{}, usagef("write for example --gpus sim:"+defaultServer, "--gpus: a replay in virtual time needs a simulated server, not %q", gpus)
	}
	s, err := servers.Find(cmp.Or(name, defaultServer))
	if err != nil {
		return servers.Server{}, usagef("", "--gpus: %v", err)
	}
	if count == 0 {
		return s, nil
	}
	if count > maxReplayGPUs {
		return servers.Server{}, usagef("", "--gpu-count: %d is more than %d", count, maxReplayGPUs)
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

const maxReplayGPUs = 1024

// outcome is one trace under one row.
type outcome struct {
	policy string // the row's label
	row    replayRow
	result sim.Result
	whole  []wholeGPU
}

// replayedTrace is one trace under all rows.
type replayedTrace struct {
	trace    traces.Trace
	outcomes []outcome
	// reference is the outcome that ratios are to: one task per GPU strictly
	// in order. It may be one of outcomes.
	reference *outcome
}

// referencePreset is what ratios are to.
const referencePreset = "Exclusive"

// run replays everything, one after the other.
func (v *virtualReplay) run() ([]replayedTrace, error) {
	defer v.console.status("")
	var all []replayedTrace
	for _, t := range v.traces {
		done := replayedTrace{trace: t}
		player := v.player(t)
		for _, row := range v.rows {
			o, err := player.play(row)
			if err != nil {
				return nil, err
			}
			done.outcomes = append(done.outcomes, o)
		}
		if done.reference = done.under(referencePreset); done.reference == nil {
			o, err := player.play(mustPreset(referencePreset))
			if err != nil {
				return nil, err
			}
			done.reference = &o
		}
		all = append(all, done)
	}
	return all, nil
}

// under is the outcome of the row of that label, or nil.
func (r *replayedTrace) under(label string) *outcome {
	for i := range r.outcomes {
		if r.outcomes[i].policy == label {
			return &r.outcomes[i]
		}
	}
	return nil
}

// player replays one trace under several rows.
type player struct {
	replay *virtualReplay
	trace  traces.Trace
	tasks  map[string][]sim.Task // by estimator
	whole  map[string][]wholeGPU // likewise
}

func (v *virtualReplay) player(t traces.Trace) *player {
	return &player{v, t, map[string][]sim.Task{}, map[string][]wholeGPU{}}
}

func (p *player) play(row replayRow) (outcome, error) {
	v := p.replay
	maker := taskMaker{
		catalogue: booking.NewCatalogue(), method: row.estimator, checkpoint: v.checkpoint,
		asOriginal: row.preset, most: v.server.GPUs[0].Memory - row.options.Headroom,
	}
	for _, g := range v.server.GPUs {
		maker.most = min(maker.most, g.Memory-row.options.Headroom)
	}
	key := fmt.Sprint(maker.method, maker.asOriginal, maker.most)
	if p.tasks[key] == nil {
		tasks, err := maker.tasks(p.trace)
		if err != nil {
			return outcome{}, err
		}
		p.tasks[key], p.whole[key] = tasks, maker.whole
	}
	r, err := sim.Run(sim.Config{
		Options: row.options, GPUs: simGPUs(v.server), StartUp: v.startUp, Score: row.score, Sharing: v.sharing, Timeline: v.files.charts(),
		Observe: v.progress(p.trace.Name, row.label, len(p.trace.Tasks)),
	}, p.tasks[key])
	if err != nil {
		return outcome{}, fmt.Errorf("%s, policy %s: %w", p.trace.Name, row.label, err)
	}
	return outcome{row.label, row, r, p.whole[key]}, nil
}

// progress returns what keeps the status line of a long run, or nil.
func (v *virtualReplay) progress(trace, policy string, tasks int) func(*mapper.State, mapper.Event, []mapper.Decision) {
	if !v.console.live {
		return nil
	}
	done, shown := 0, time.Now()
	return func(s *mapper.State, _ mapper.Event, decisions []mapper.Decision) {
		for _, d := range decisions {
			if _, ok := d.(mapper.Finish); !ok {
				continue
			}
			if done++; time.Since(shown) > beat {
				shown = time.Now()
				v.console.status(fmt.Sprintf("%s %s, policy %s: %d/%d done", bar(done, tasks, 20), trace, policy, done, tasks))
			}
		}
	}
}

// simGPUs are the modelled GPUs of a server.
func simGPUs(s servers.Server) []sim.GPU {
	gpus := make([]sim.GPU, len(s.GPUs))
	for i, g := range s.GPUs {
		gpus[i] = sim.GPU{
			ID: mapper.GPUID(g.UUID), Index: g.Index, Model: g.Model, Memory: g.Memory,
			IdlePower: g.IdlePower, PeakPower: g.PeakPower, Speed: g.Speed,
		}
	}
	return gpus
}

// replayVirtual runs v and prints how it went.
func (a *app) replayVirtual(v *virtualReplay, asJSON bool) error {
	all, err := v.run()
	if err == nil {
		err = v.files.write(v, all)
	}
	if err != nil {
		return err
	}
	if asJSON {
		err = a.json(v.json(all))
	} else {
		for i := range all {
			if i > 0 {
				fmt.Fprintln(a.out)
			}
			err = errors.Join(err, v.print(a.out, &all[i]))
		}
		if len(all) > 1 {
			err = errors.Join(err, printOverall(a.out, all))
		}
	}
	if err != nil {
		return err
	}
	short := 0
	if v.bounds != nil {
		w := a.out
		if asJSON {
			w = a.err
		} else {
			fmt.Fprintln(w)
		}
		v.bounds.moved(w, all, v.rows)
		short = v.bounds.check(w, all, v.rows)
		if v.record {
			if err := v.bounds.record(all, v.rows); err != nil {
				return err
			}
		}
	}
	if short > 0 || slices.ContainsFunc(all, replayedTrace.failed) {
		return codeError(exitFailed)
	}
	return nil
}

func (r replayedTrace) failed() bool {
	return slices.ContainsFunc(r.outcomes, func(o outcome) bool { return o.result.Metrics.Failed > 0 })
}
