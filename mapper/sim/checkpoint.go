package sim

import "math"

// save stores the last checkpoint of a run that ends. Its start-up is not training, and
// must be repeated.
func (e *engine) save(r *run) {
	every := r.task.Checkpoint.Seconds()
	if every <= 0 {
		return
	}
	trained := min(r.goal, r.trained+r.rate*seconds(e.now-r.at))
	done := e.saved[r.id-1] + max(0, trained-TrainsFrom(r.task.SoloTime.Seconds()))
	e.saved[r.id-1] = max(e.saved[r.id-1], math.Floor(done/every)*every)
}
