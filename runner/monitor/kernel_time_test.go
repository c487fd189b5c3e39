package monitor

import (
	"testing"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/gpu"
)

// TestTimesOfTasks checks that the mapper gets the mean over the window of the time in which
// kernels of a task's present attempt ran, if the source reports it. Old readings are dropped,
// and a change is reported.
func TestTimesOfTasks(t *testing.T) {
	m := newTestMonitor(newCards(1))
	look := func(seconds float64, processes ...gpu.Process) []model.TaskUse {
		at := units.Instant(1e18 + seconds*1e9)
		return m.digest(at, gpu.Sample{UUID: "GPU-a", Processes: processes}).Tasks
	}
	of := func(task model.TaskID, attempt int, active float64) gpu.Process {
		return gpu.Process{Task: task, Attempt: attempt, Used: 1, Active: active, Timed: active >= 0}
	}
	for i, row := range []struct {
		seconds float64
		shown   []gpu.Process
		want    []model.TaskUse
	}{
		{0, []gpu.Process{of(1, 1, 0.2), of(1, 1, 0.3), of(2, 1, -1), of(0, 0, 0.9)}, []model.TaskUse{{Task: 1, Used: 2, Active: 0.5, Timed: true}, {Task: 2, Used: 1}}},
		{10, []gpu.Process{of(1, 1, 0.8), of(1, 1, 0.9), of(2, 1, 0)}, []model.TaskUse{{Task: 1, Used: 2, Active: 0.75, Timed: true}, {Task: 2, Used: 1, Timed: true}}},
		{35, []gpu.Process{of(1, 1, 0.5), of(1, 1, -1), of(2, 1, 1)}, []model.TaskUse{{Task: 1, Used: 2, Active: 0.75, Timed: true}, {Task: 2, Used: 1, Active: 0.5, Timed: true}}},
		{36, []gpu.Process{of(1, 2, 0.1), of(1, 1, 0.9), of(2, 1, -1)}, []model.TaskUse{{Task: 1, Used: 2, Active: 0.1, Timed: true}, {Task: 2, Used: 1}}},
	} {
		got := look(row.seconds, row.shown...)
		if len(got) != len(row.want) {
			t.Fatalf("step %d: %+v", i, got)
		}
		for j := range got {
			if got[j] != row.want[j] {
				t.Errorf("step %d: %+v, want %+v", i, got[j], row.want[j])
			}
		}
	}
	m.Forget(1, 1)
	m.Forget(2, 1)
	if len(m.times) != 1 {
		t.Errorf("the readings of %d attempts are kept, want those of one", len(m.times))
	}
	told := func(active float64, timed bool) model.Sampled {
		return model.Sampled{GPUs: []model.GPUSample{{ID: "GPU-a", Tasks: []model.TaskUse{{Task: 1, Active: active, Timed: timed}}}}}
	}
	if equalSamples(told(0.5, true), told(0.6, true)) || equalSamples(told(0, true), told(0, false)) || !equalSamples(told(0.5, true), told(0.5, true)) {
		t.Error("a difference is not told")
	}
}
