package sim

import (
	"testing"

	"carma/mapper/model"
)

// TestProcesses checks that samples have the share of time of a task's kernels only if
// the truth says so. The share is at least its SM activity, and 0 while it loads. A
// change of the share alone is reported.
func TestProcesses(t *testing.T) {
	u := &use{run: &run{id: 7, training: true, task: &Task{Name: "a"}}, load: Load{SMACT: 0.3, DRAMA: 0.1}, held: 5, speed: 0.5}
	if got := u.shows(Truth{}); got != (model.TaskUse{Task: 7, Used: 5}) {
		t.Errorf("by the model: %+v", got)
	}
	slow := u.shows(Truth{Processes: 1})
	u.speed = 1
	fast := u.shows(Truth{Processes: 1})
	if !fast.Timed || fast.Active < 0.45 || fast.Active > 0.9 || slow.Active <= fast.Active {
		t.Errorf("a task of SMACT 0.3 shows %+v alone, %+v at half its speed", fast, slow)
	}
	u.load.SMACT = 0.97
	if got := u.shows(Truth{Processes: 1}); got.Active < 0.97 {
		t.Errorf("with SMACT 0.97 it shows %+v", got)
	}
	d := &device{truth: Truth{Processes: 1}, uses: []*use{u}, tasks: []model.TaskUse{u.shows(Truth{Processes: 1})}}
	if d.timesDiffer() {
		t.Error("nothing has changed")
	}
	u.run.training = false
	if got := u.shows(d.truth); !got.Timed || got.Active != 0 || !d.timesDiffer() {
		t.Errorf("while it loads it shows %+v", got)
	}
}
