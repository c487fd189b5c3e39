package sim

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"carma/internal/units"
)

// TestEnergyOfTasks checks that two tasks on one GPU share its energy, and that the
// energy of a GPU without tasks is charged to no task.
func TestEnergyOfTasks(t *testing.T) {
	light, heavy := Load{SMACT: 0.1}, Load{SMACT: 0.5}
	o := options("round-robin")
	o.SMACTCap, o.WarmUp = 0, 0
	tasks := []Task{training(0, 1000*time.Second, units.GiB, light), training(0, 1000*time.Second, units.GiB, heavy), training(3*time.Hour, 100*time.Second, units.GiB, light)}
	r := mustRun(t, Config{Options: o, GPUs: station(1)}, tasks)
	speeds := Speeds([]Load{light, heavy})
	if speeds[0] < 0.99 || speeds[1] < 0.99 {
		t.Fatalf("they disturb each other: %v", speeds)
	}
	begin := TrainsFrom(1000)
	above := Watts(53, 400, Activity{SMACT: 0.6}) - 53
	for i, share := range []float64{1. / 6, 5. / 6} {
		want := 53./2*1000 + above*share*(1000-begin)
		if got := r.Tasks[i].EnergyJ; math.Abs(got/want-1) > 0.02 {
			t.Errorf("task %d has %.0f J, want %.0f", i+1, got, want)
		}
	}
	sum := r.Tasks[0].EnergyJ + r.Tasks[1].EnergyJ + r.Tasks[2].EnergyJ
	idle := 53 * (3*time.Hour - 1000*time.Second).Seconds()
	if off := r.Metrics.EnergyJ - sum - idle; math.Abs(off) > 0.01*sum {
		t.Errorf("%.0f J in all, %.0f of tasks and %.0f of nobody", r.Metrics.EnergyJ, sum, idle)
	}
}

// TestEnergySums checks that tasks and idle GPUs always account for all energy.
func TestEnergySums(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cfg := anyConfig(rt, 3)
		cfg.Timeline = true
		r := mustRun(t, cfg, anyTasks(rt, 3))
		sum := 0.0
		for i := range r.Tasks {
			if r.Tasks[i].EnergyJ < 0 {
				rt.Fatalf("task %d has %v J", i+1, r.Tasks[i].EnergyJ)
			}
			sum += r.Tasks[i].EnergyJ
		}
		for i := range cfg.GPUs {
			sum += cfg.GPUs[i].IdlePower * idleSeconds(r.Timeline, cfg.GPUs[i].Index)
		}
		if all := r.Metrics.EnergyJ; math.Abs(sum-all) > 1e-6*all+1e-3 {
			rt.Fatalf("%v J of tasks and idle GPUs, %v J in all", sum, all)
		}
	})
}

// idleSeconds returns the time for which no container ran on a GPU.
func idleSeconds(line *Timeline, index int) float64 {
	var idle float64
	for at := line.Start; at < line.End; {
		busy, next := false, line.End
		for _, s := range line.Spans {
			if line.GPUs[s.GPU].Index != index || s.Started == 0 || s.Ended <= s.Started {
				continue
			}
			busy = busy || s.Started <= at && at < s.Ended
			for _, bend := range []units.Instant{s.Started, s.Ended} {
				if bend > at {
					next = min(next, bend)
				}
			}
		}
		if !busy {
			idle += seconds(next - at)
		}
		at = next
	}
	return idle
}
