package mapper

import (
	"fmt"
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
)

// TestEndOnALostGPU checks the end of a task on a GPU that was lost meanwhile, if its run time
// changes only the expectations of its own kind.
func TestEndOnALostGPU(t *testing.T) {
	w := newWorld(t, DefaultsOf("carma"), 1)
	runs := map[string]time.Duration{"a0": 2 * time.Hour}
	for i := range 12 {
		runs[fmt.Sprint("a", i+1)] = time.Hour // so that the family's mean hardly changes
	}
	taught(w, runs)
	id := w.submit(units.GiB, kind("a0", "a"))
	w.started(id)
	w.step(model.GPUsFound{At: w.now})
	w.wait(3 * time.Hour)
	w.exit(id, model.ExitOK)
	w.wantPhase(id, model.Succeeded)
	if left := w.s.GPUs(); len(left) > 0 {
		t.Errorf("a GPU that is lost and has no task is still there: %+v", left)
	}
}
