package main

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"carma/configs/traces"
	"carma/mapper"
	"carma/mapper/sim"
)

// TestStudy prints what the docs say of policy carma's limits: how it does when
// the simulated GPUs do not behave as it predicts, and how much better the best
// of many orders is that hindsight picks. It is run by hand:
//
//	STUDY=1 go test ./cmd/carma -run TestStudy -v
func TestStudy(t *testing.T) {
	if os.Getenv("STUDY") == "" {
		t.Skip("a study, run by hand: STUDY=1 go test ./cmd/carma -run TestStudy -v")
	}
	var list []traces.Trace
	for _, name := range studyTraces() {
		trace, err := traces.Read(name)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, trace)
	}
	s := &study{t: t, traces: list}
	for _, v := range []variant{
		{name: "as predicted"},
		{name: "waiting for SMs 1.3 times", model: func(m *sim.Model) { m.Block *= 1.3 }},
		{name: "waiting for SMs 0.7 times", model: func(m *sim.Model) { m.Block *= 0.7 }},
		{name: "DRAM contention 1.5 times", model: func(m *sim.Model) { m.DRAM *= 1.5 }},
		{name: "DRAM contention 0.5 times", model: func(m *sim.Model) { m.DRAM *= 0.5 }},
		{name: "length of kernels counts half", model: func(m *sim.Model) { m.Turn *= 2 }},
		{name: "activity off by up to 20 %", task: func(r *rand.Rand, t *sim.Task) {
			for i := range t.Loads {
				f := 0.8 + 0.4*r.Float64()
				t.Loads[i].SMACT, t.Loads[i].DRAMA = min(1, t.Loads[i].SMACT*f), min(1, t.Loads[i].DRAMA*f)
			}
		}},
		{name: "run times off by up to half", task: func(r *rand.Rand, t *sim.Task) {
			t.SoloTime = time.Duration(float64(t.SoloTime) * (0.5 + r.Float64()))
		}},
		{name: "no run times of models known", task: func(_ *rand.Rand, t *sim.Task) { t.Expected.RunTime = 0 }},
		{name: "nothing known but history", task: func(_ *rand.Rand, t *sim.Task) { t.Expected = mapper.Expected{} }},
	} {
		s.run(v)
	}
}

func studyTraces() []string {
	names := []string{"philly-mix-90", "philly-heavy-60", "philly-t1-60", "philly-t2-60"}
	for i := range 10 {
		names = append(names, fmt.Sprintf("generated-%d", i+1))
	}
	return names
}

type study struct {
	t      *testing.T
	traces []traces.Trace
}

type variant struct {
	name  string
	model func(*sim.Model)
	task  func(*rand.Rand, *sim.Task)
}

// run prints geometric means of ratios to one task per GPU, strictly in order,
// of the same tasks.
func (s *study) run(v variant) {
	for _, policy := range []string{"magm", "carma"} {
		var makespan, jct, p95, bound, worst float64
		for i, trace := range s.traces {
			tasks, err := (&taskMaker{catalogue: newCatalogue(), method: "catalogue"}).tasks(trace)
			if err != nil {
				s.t.Fatal(err)
			}
			r := rand.New(rand.NewPCG(uint64(i), 1))
			for k := range tasks {
				tasks[k].Loads, tasks[k].Memory = slices.Clone(tasks[k].Loads), slices.Clone(tasks[k].Memory)
				if v.task != nil {
					v.task(r, &tasks[k])
				}
			}
			strict := mapper.DefaultsOf("exclusive")
			strict.LookAhead = 1
			first, m := s.replay(strict, v, tasks), s.replay(mapper.DefaultsOf(policy), v, tasks)
			ratio := m.RatioTo(first)
			makespan += math.Log(ratio.Makespan)
			jct += math.Log(ratio.MeanJCT)
			p95 += math.Log(ratio.P95JCT)
			bound += math.Log(m.Makespan.Seconds() / m.LowerBound.Seconds())
			worst = max(worst, m.WorstSlowdown)
		}
		mean := func(sum float64) float64 { return math.Exp(sum / float64(len(s.traces))) }
		s.t.Logf("%-32s %-6s makespan %.3f JCT %.3f p95 %.3f bound %.3f worst %.2f",
			v.name, policy, mean(makespan), mean(jct), mean(p95), mean(bound), cmp.Or(worst, 1))
	}
}

func (s *study) replay(o mapper.Options, v variant, tasks []sim.Task) sim.Metrics {
	server, err := simulatedServer("sim:"+defaultServer, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	cfg := sim.Config{Options: o, GPUs: simGPUs(server), StartUp: defaultStartUp}
	if v.model != nil {
		m := sim.Fitted
		v.model(&m)
		cfg.Model = &m
	}
	r, err := sim.Run(cfg, tasks)
	if err != nil {
		s.t.Fatal(err)
	}
	return r.Metrics
}
