package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"carma/configs/nearest"
	"carma/configs/servers"
	"carma/configs/traces"
	"carma/configs/workloads"
	"carma/estimator"
	"carma/mapper"
	"carma/mapper/sim"
)

// virtualReplay is a replay in virtual time: every trace under every policy.
type virtualReplay struct {
	console   *console
	traces    []traces.Trace
	server    servers.Server
	policies  []string
	estimator string
	startUp   time.Duration
	lookAhead int
	files     *replayFiles
}

// defaultStartUp is about what Docker takes to start a container with a GPU.
const defaultStartUp = time.Second

// virtualFlags are the flags of a replay in virtual time, as they were typed.
type virtualFlags struct {
	policies  string
	gpus      string
	count     int
	estimator string
	startUp   time.Duration
	lookAhead int
}

// estimators are those that a replay knows.
var estimators = []string{"catalogue", "oracle", "none"}

// newVirtualReplay checks the command line and reads the traces.
func (a *app) newVirtualReplay(f virtualFlags, args []string) (*virtualReplay, error) {
	v := &virtualReplay{console: a.console(), estimator: f.estimator, startUp: f.startUp, lookAhead: f.lookAhead}
	var err error
	if v.policies, err = policyList(f.policies); err != nil {
		return nil, err
	}
	if v.startUp < 0 || v.startUp > time.Hour {
		return nil, usagef("", "--start-up: %s is not between 0 and 1h", v.startUp)
	}
	if v.server, err = simulatedServer(f.gpus, f.count); err != nil {
		return nil, err
	}
	for _, arg := range args {
		t, err := traces.Read(arg)
		if err != nil {
			return nil, usagef("", "%v", err)
		}
		v.traces = append(v.traces, t)
	}
	return v, nil
}

// policyList reads names between commas; nothing is all there are.
func policyList(text string) ([]string, error) {
	all := mapper.PolicyNames()
	if text == "" {
		return all, nil
	}
	var list []string
	for name := range strings.SplitSeq(text, ",") {
		name = strings.TrimSpace(name)
		if !slices.Contains(all, name) {
			return nil, usagef("there are "+strings.Join(all, ", "), "--policy: unknown policy %q; nearest: %s", name, nearest.Names(name, all, 1)[0])
		}
		if slices.Contains(list, name) {
			return nil, usagef("name it once", "--policy: %s is there twice", name)
		}
		list = append(list, name)
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

// outcome is one trace under one policy.
type outcome struct {
	policy string
	result sim.Result
}

// replayedTrace is one trace under all policies.
type replayedTrace struct {
	trace    traces.Trace
	tasks    []sim.Task
	outcomes []outcome
}

// run replays everything, one after the other.
func (v *virtualReplay) run() ([]replayedTrace, error) {
	defer v.console.status("")
	var all []replayedTrace
	for _, t := range v.traces {
		done := replayedTrace{trace: t}
		var err error
		if done.tasks, err = simTasks(t, v.estimator); err != nil {
			return nil, err
		}
		for _, p := range v.policies {
			opt := mapper.DefaultsOf(p)
			opt.LookAhead = v.lookAhead
			r, err := sim.Run(sim.Config{Options: opt, GPUs: simGPUs(v.server), StartUp: v.startUp, Timeline: v.files.charts(), Observe: v.progress(t.Name, p, len(t.Tasks))}, done.tasks)
			if err != nil {
				return nil, fmt.Errorf("%s, policy %s: %w", t.Name, p, err)
			}
			done.outcomes = append(done.outcomes, outcome{p, r})
		}
		all = append(all, done)
	}
	return all, nil
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

// simTasks turns a trace into what the model plays.
func simTasks(t traces.Trace, method string) ([]sim.Task, error) {
	// Large traces repeat few workloads, and the catalogue searches by name.
	type query struct {
		workload string
		gpus     int
		declared mapper.Bytes
	}
	catalogue, known := newCatalogue(), map[query]mapper.Estimate{}
	tasks := make([]sim.Task, len(t.Tasks))
	for i, in := range t.Tasks {
		p, err := workloads.Find(in.Workload)
		if err != nil {
			return nil, err // the trace was checked
		}
		c, err := p.Campaign(t.Campaign)
		if err != nil {
			return nil, err
		}
		out := sim.Task{
			At: in.At, Name: in.Workload, User: in.User, Kind: in.Workload, Family: p.Model + " " + p.Dataset, GPUs: in.GPUs, Priority: in.Priority,
			SoloTime: c.RunTime, Context: workloads.Context(t.Campaign),
		}
		peaks, err := p.Peaks(t.Campaign)
		if err != nil {
			return nil, err
		}
		alone := loads(p)
		for g := range in.GPUs { // more GPUs than measured are like the last
			out.Memory = append(out.Memory, peaks[min(g, len(peaks)-1)])
			out.Loads = append(out.Loads, alone[min(g, len(alone)-1)])
		}
		out.Expected = catalogue.Expect(estimator.Query{Model: in.Workload, GPUs: in.GPUs})
		q := query{in.Workload, in.GPUs, in.Mem}
		estimate, ok := known[q]
		if !ok {
			if estimate, err = catalogue.forReplay(method, in, t.Campaign, out.Memory); err != nil {
				return nil, err
			}
			known[q] = estimate
		}
		out.Estimate = estimate
		tasks[i] = out
	}
	return tasks, nil
}

// forReplay is what the mapper is told about a task's memory.
func (c catalogue) forReplay(method string, t traces.Task, campaign string, peaks []mapper.Bytes) (mapper.Estimate, error) {
	switch method {
	case "oracle":
		return mapper.Estimate{Memory: slices.Max(peaks), Method: method}, nil
	case "horus", "gpumemnet":
		p, _ := workloads.Find(t.Workload)
		e := map[string]mapper.Bytes{"horus": p.Estimates.Horus, "gpumemnet": p.Estimates.GPUMemNet}[method]
		if e == 0 {
			e = 40000 * mapper.MiB
		}
		return mapper.Estimate{Memory: min(e, 40000*mapper.MiB), Method: method}, nil
	case "none":
		return mapper.Estimate{Method: method}, nil
	}
	e, err := c.Estimate(estimator.Query{Declared: t.Mem, Model: inCampaign(t.Workload, campaign), GPUs: t.GPUs})
	if err != nil {
		return mapper.Estimate{}, err
	}
	return mapper.Estimate{Memory: e.Memory, Point: e.Point, WholeGPU: e.WholeGPU, Method: string(e.Method)}, nil
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
	}
	if err == nil && slices.ContainsFunc(all, replayedTrace.failed) {
		err = codeError(exitFailed)
	}
	return err
}

func (r replayedTrace) failed() bool {
	return slices.ContainsFunc(r.outcomes, func(o outcome) bool { return o.result.Metrics.Failed > 0 })
}

// reference is the outcome that ratios are to: exclusive's, or nil.
func (r *replayedTrace) reference() *outcome {
	for i := range r.outcomes {
		if r.outcomes[i].policy == "exclusive" {
			return &r.outcomes[i]
		}
	}
	return nil
}
