package study

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"carma/configs/servers"
	"carma/configs/traces"
	"carma/estimator/booking"
	"carma/internal/units"
	"carma/mapper"
	"carma/mapper/model"
	"carma/mapper/sim"
)

// TestStudy prints the figures in test/lab/studies.md on policy carma's limits: its
// results when other coefficients drive the simulated GPUs than it predicts by, the use
// of SM time, and the gain of the best of many orders picked in hindsight. make
// replay-tables writes its lines there:
//
//	STUDY=1 go test ./mapper/sim/study -run TestStudy -v
func TestStudy(t *testing.T) {
	if os.Getenv("STUDY") == "" {
		t.Skip("a study, run by hand: STUDY=1 go test ./mapper/sim/study -run TestStudy -v")
	}
	var list []traces.Trace
	for _, name := range studyTraces() {
		trace, err := traces.Read(name)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, trace)
	}
	s := &limits{t: t, traces: list}
	for _, v := range []variant{
		{name: "as predicted"},
		{name: "waiting for SMs 1.3 times", model: func(m *sim.Model) { m.Block *= 1.3 }},
		{name: "waiting for SMs 0.7 times", model: func(m *sim.Model) { m.Block *= 0.7 }},
		{name: "DRAM contention 1.5 times", model: func(m *sim.Model) { m.DRAM *= 1.5 }},
		{name: "DRAM contention 0.5 times", model: func(m *sim.Model) { m.DRAM *= 0.5 }},
		{name: "length of kernels counts half", model: func(m *sim.Model) { m.Turn *= 2 }},
	} {
		s.run(v)
	}
	s.losses()
	s.hindsight()
}

func studyTraces() []string {
	names := []string{"philly-mix-90", "philly-heavy-60", "philly-t1-60", "philly-t2-60"}
	for i := range 10 {
		names = append(names, fmt.Sprintf("generated-%d", i+1))
	}
	return names
}

type limits struct {
	t      *testing.T
	traces []traces.Trace
}

type variant struct {
	name  string
	model func(*sim.Model)
}

// run prints geometric means of ratios to one task per GPU, strictly in order,
// of the same tasks.
func (s *limits) run(v variant) {
	for _, policy := range []string{"magm", "carma"} {
		var makespan, jct, p95, bound, worst float64
		for _, trace := range s.traces {
			tasks, err := (&taskMaker{catalogue: booking.NewCatalogue(), method: "catalogue"}).tasks(trace)
			if err != nil {
				s.t.Fatal(err)
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

func (s *limits) replay(o model.Options, v variant, tasks []sim.Task) sim.Metrics {
	server, err := Server("sim:"+servers.Default, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	cfg := sim.Config{Options: o, GPUs: GPUs(server), StartUp: StartUp}
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

// losses prints the SM time that policy carma does not use: while tasks wait, while no task
// waits and more tasks will arrive, and after the last task has arrived.
func (s *limits) losses() {
	var used float64
	var lost [3]float64
	for _, trace := range s.traces {
		last := units.Instant(time.Hour).Add(trace.Tasks[len(trace.Tasks)-1].At) // replays begin at one hour
		var before units.Instant
		busy, gpus, phase := 0.0, 0, 0
		s.observe(trace, func(state *mapper.State, _ model.Event, _ []model.Decision) {
			if before > 0 {
				dt := state.Now().Sub(before).Seconds()
				used += dt * busy
				lost[phase] += dt * (float64(gpus) - busy)
			}
			before, busy, gpus, phase = state.Now(), 0, len(state.GPUs()), 1
			for _, g := range state.GPUs() {
				sm := 0.0
				for _, r := range g.Residents {
					sm += r.Load.SMACT * r.Speed
				}
				busy += min(1, sm)
			}
			switch {
			case state.QueueLen() > 0:
				phase = 0
			case before >= last:
				phase = 2
			}
		})
	}
	all := used + lost[0] + lost[1] + lost[2]
	s.t.Logf("SM time of carma: used %.3f; lost while tasks wait %.3f, while none waits and more come %.3f, after the last came %.3f",
		used/all, lost[0]/all, lost[1]/all, lost[2]/all)
}

func (s *limits) observe(trace traces.Trace, see func(*mapper.State, model.Event, []model.Decision)) {
	tasks, err := (&taskMaker{catalogue: booking.NewCatalogue(), method: "catalogue"}).tasks(trace)
	if err != nil {
		s.t.Fatal(err)
	}
	server, err := Server("sim:"+servers.Default, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := sim.Run(sim.Config{Options: mapper.DefaultsOf("carma"), GPUs: GPUs(server), StartUp: StartUp, Observe: see}, tasks); err != nil {
		s.t.Fatal(err)
	}
}

// hindsight prints the gain of the best of 300 replays of each trace with expected run
// times off by random factors, so that orders and places differ: a lower bound on what a
// planner that knew the future could reach.
func (s *limits) hindsight() {
	var makespan, jct, p95 float64
	for i, trace := range s.traces {
		tasks, err := (&taskMaker{catalogue: booking.NewCatalogue(), method: "catalogue"}).tasks(trace)
		if err != nil {
			s.t.Fatal(err)
		}
		plain := s.replay(mapper.DefaultsOf("carma"), variant{}, tasks)
		best := [3]float64{1, 1, 1}
		for k := range 300 {
			r := rand.New(rand.NewPCG(uint64(i), uint64(k)))
			other := slices.Clone(tasks)
			for j := range other {
				other[j].Expected.RunTime = time.Duration(float64(other[j].Expected.RunTime) * (0.3 + 1.7*r.Float64()))
			}
			if m := s.replay(mapper.DefaultsOf("carma"), variant{}, other); m.WorstSlowdown <= 1.65 {
				ratio := m.RatioTo(plain)
				best[0], best[1], best[2] = min(best[0], ratio.Makespan), min(best[1], ratio.MeanJCT), min(best[2], ratio.P95JCT)
			}
		}
		makespan, jct, p95 = makespan+math.Log(best[0]), jct+math.Log(best[1]), p95+math.Log(best[2])
	}
	mean := func(sum float64) float64 { return math.Exp(sum / float64(len(s.traces))) }
	s.t.Logf("best of 300 in hindsight, each by itself: makespan %.3f JCT %.3f p95 %.3f of carma's", mean(makespan), mean(jct), mean(p95))
}
