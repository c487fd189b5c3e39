package study

import (
	"fmt"
	"math"
	"testing"

	"carma/configs/servers"
	"carma/configs/traces"
	"carma/estimator/booking"
	"carma/mapper"
	"carma/mapper/model"
	"carma/mapper/sim"
)

// TestExclusiveFIFO compares strict first-come first-served, one task per GPU
// and no start-up cost, with a calculation by hand from the traces' arrivals
// and the tasks' measured run times: makespan in hours, mean waiting and mean
// JCT in minutes. The original's own system adds its overheads: it measured
// 10.64 h for philly-heavy-60 on 4 GPUs.
func TestExclusiveFIFO(t *testing.T) {
	for _, c := range []struct {
		trace               string
		gpus                int
		makespan, wait, jct float64
	}{
		{"philly-mix-90", 4, 11.23, 170, 194},
		{"philly-heavy-60", 4, 10.16, 217, 253},
		{"philly-t1-60", 4, 7.21, 112, 136},
		{"philly-t2-60", 4, 8.66, 75, 104},
		{"philly-mix-90", 3, 14.79, 270, 294},
		{"philly-heavy-60", 3, 13.12, 318, 354},
		{"philly-t1-60", 3, 9.39, 186, 210},
		{"philly-t2-60", 3, 11.06, 154, 182},
	} {
		t.Run(fmt.Sprintf("%s on %d GPUs", c.trace, c.gpus), func(t *testing.T) {
			trace, err := traces.Read(c.trace)
			if err != nil {
				t.Fatal(err)
			}
			tasks, err := (&taskMaker{catalogue: booking.NewCatalogue(), method: "catalogue"}).tasks(trace)
			if err != nil {
				t.Fatal(err)
			}
			server, err := Server("sim:"+servers.Default, c.gpus)
			if err != nil {
				t.Fatal(err)
			}
			opt := mapper.DefaultsOf("exclusive")
			opt.LookAhead, opt.WarmUp = 1, 0
			r, err := sim.Run(sim.Config{Options: opt, GPUs: GPUs(server)}, tasks)
			if err != nil {
				t.Fatal(err)
			}
			m := r.Metrics
			for name, v := range map[string][2]float64{
				"makespan": {m.Makespan.Hours(), c.makespan}, "mean waiting": {m.MeanWaiting.Minutes(), c.wait}, "mean JCT": {m.MeanJCT.Minutes(), c.jct},
			} {
				off := v[0]/v[1] - 1
				t.Logf("%s %.2f, by hand %v: %+.2f %%", name, v[0], v[1], 100*off)
				if math.Abs(off) > 0.03 {
					t.Errorf("%s is %.2f, by hand %v: %+.1f %%", name, v[0], v[1], 100*off)
				}
			}
			if m.Succeeded != len(trace.Tasks) || m.OOMs != 0 || math.Abs(m.WorstSlowdown-1) > 1e-6 {
				t.Errorf("%d of %d succeeded, %d OOMs, slowdown %v", m.Succeeded, len(trace.Tasks), m.OOMs, m.WorstSlowdown)
			}
		})
	}
}

// TestPredictedProgress checks that the predicted progress of a task at its end is its
// whole run, within 2 % and the time to load its data: the prediction sees the same
// neighbours as the model, but not that a task neither disturbs others nor is disturbed
// while it loads. If tasks report their speeds, the reports are 10 % off at random, and
// correct the prediction: then within 7 %.
func TestPredictedProgress(t *testing.T) {
	for _, row := range []struct {
		name   string
		silent float64
		within float64
	}{{"nothing is measured", 1, 0.02}, {"measured with errors", 0, 0.07}} {
		t.Run(row.name, func(t *testing.T) { predictedProgress(t, row.silent, row.within) })
	}
}

func predictedProgress(t *testing.T, silent, within float64) {
	t.Helper()
	trace, err := traces.Read("philly-t1-60")
	if err != nil {
		t.Fatal(err)
	}
	tasks, err := (&taskMaker{catalogue: booking.NewCatalogue(), method: "catalogue"}).tasks(trace)
	if err != nil {
		t.Fatal(err)
	}
	server, err := Server("sim:"+servers.Default, 0)
	if err != nil {
		t.Fatal(err)
	}
	ended, slowed := 0, 0
	r, err := sim.Run(sim.Config{
		Options: mapper.DefaultsOf("carma"), GPUs: GPUs(server), StartUp: StartUp, Truth: sim.Truth{Silent: silent},
		Observe: func(_ *mapper.State, _ model.Event, done []model.Decision) {
			for _, d := range done {
				f, ok := d.(model.Finish)
				if !ok {
					continue
				}
				ended++
				solo := tasks[f.Task.ID-1].SoloTime.Seconds() // the trace is in order of arrival
				if off := f.Task.Done - solo; math.Abs(off) > within*solo+sim.TrainsFrom(solo) {
					t.Errorf("task %d (%s) has done %.1f s of %.1f: %+.1f %%", f.Task.ID, tasks[f.Task.ID-1].Name, f.Task.Done, solo, 100*off/solo)
				}
				if a := f.Task.Last(); a.Ended.Sub(a.Started).Seconds() > 1.05*solo {
					slowed++
				}
			}
		},
	}, tasks)
	if err != nil {
		t.Fatal(err)
	}
	if ended != len(tasks) || slowed < 10 || r.Metrics.OOMs > 0 {
		t.Errorf("%d of %d tasks ended, %d of them slowed down; %d OOMs", ended, len(tasks), slowed, r.Metrics.OOMs)
	}
}
