package report

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper"
	"carma/mapper/model"
	"carma/mapper/sim"
)

// simulated returns a small server's replay under the policies.
func simulated(t testing.TB, tasks, gpus int, policies ...string) Data {
	t.Helper()
	d := Data{Trace: "a trace", Description: "of a test", Server: "station", Facts: []string{"estimator none"}}
	var devices []sim.GPU
	for i := range gpus {
		devices = append(devices, sim.GPU{ID: model.GPUID(fmt.Sprint("GPU-", i)), Index: i, Model: "A100", Memory: 40 * units.GiB, IdlePower: 50, PeakPower: 400, Speed: 1})
		d.GPUs = append(d.GPUs, GPU{i, "A100", 40 * units.GiB})
	}
	var submitted []sim.Task
	for i := range tasks {
		submitted = append(submitted, sim.Task{
			At: time.Duration(i) * time.Minute, Name: fmt.Sprint("task-", i+1), GPUs: 1, SoloTime: time.Duration(10+i%9*5) * time.Minute,
			Context: units.GiB / 2, Memory: []units.Bytes{units.Bytes(6+i%4*6) * units.GiB}, Loads: []sim.Load{{SMACT: 0.3 + 0.05*float64(i%8), DRAMA: 0.2}},
			Estimate: model.Estimate{Memory: 6 * units.GiB},
		})
	}
	for _, p := range policies {
		opt := mapper.DefaultOptions()
		opt.Policy, opt.WarmUp = p, 0
		r, err := sim.Run(sim.Config{Options: opt, GPUs: devices, StartUp: time.Second, Timeline: true}, submitted)
		if err != nil {
			t.Fatal(err)
		}
		run := Run{Policy: p, Metrics: r.Metrics, Timeline: r.Timeline}
		for i, task := range r.Tasks {
			run.Tasks = append(run.Tasks, Task{
				ID: task.ID, Name: task.Task.Name, Kind: fmt.Sprint("kind ", i%12), Phase: task.Phase, Reason: task.Reason, Record: task.Record,
			})
		}
		d.Runs = append(d.Runs, run)
	}
	return d
}

func written(t testing.TB, all ...Data) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, all); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
