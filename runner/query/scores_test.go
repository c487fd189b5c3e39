package query

import (
	"math"
	"testing"

	"carma/internal/units"
	"carma/mapper/model"
)

// TestScore checks the figures of a family: the median of the errors, the share of tasks that used
// more than their estimate, and the mean overhead. A task that failed counts in no family.
func TestScore(t *testing.T) {
	families := map[string]*errorTally{}
	task := func(phase model.Phase, point, memory, peak units.Bytes) *model.Task {
		return &model.Task{
			Phase: phase, Estimate: model.Estimate{Memory: memory, Point: point, Method: "catalogue"},
			Attempts: []model.Attempt{{N: 1, Class: model.ExitOK, Started: 1, Ended: units.Instant(0).Add(1e12), Peak: peak}},
		}
	}
	if scored(families, task(model.Failed, 10, 12, 10)) || len(families) > 0 {
		t.Error("a failed task is scored")
	}
	for _, x := range []*model.Task{task(model.Succeeded, 10, 12, 10), task(model.Succeeded, 12, 15, 10), task(model.Succeeded, 16, 16, 20)} {
		if !scored(families, x) {
			t.Fatalf("%+v is not scored", x)
		}
	}
	got := families["catalogue"].score("catalogue")
	if got.Tasks != 3 || math.Abs(got.Median-0.2) > 1e-9 || math.Abs(got.Above-1./3) > 1e-9 || math.Abs(got.Overhead-0.5/3) > 1e-9 || got.PlainTasks != 0 || got.PlainMedian != -1 {
		t.Errorf("%+v", got)
	}
}
