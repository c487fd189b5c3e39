package runner

import (
	"carma/internal/units"
	"carma/mapper"
	"carma/runner/energy"
	"carma/runner/gpu"
)

// loadEnergy loads the energy accounts of an earlier daemon.
func (r *Runner) loadEnergy() {
	parents := map[string]string{}
	for id, d := range r.gpus.Devices() {
		parents[string(id)] = d.Parent
	}
	var err error
	r.energy, err = energy.Open(r.Clock.Now(), parents, r.Journal, func(key gpu.AttemptKey) bool {
		t, ok := r.loop.State().Task(key.Task)
		return ok && t.Alive() != nil && t.Alive().N == key.Attempt
	})
	if err != nil {
		r.Log.Warn().Err(err).Msg("the energy that was noted cannot be read; it counts from now on")
	}
}

// storeEnergy stores the energy accounts.
func (r *Runner) storeEnergy() {
	if err := r.energy.Store(r.Clock.Now(), r.Journal); err != nil {
		r.Log.Debug().Err(err).Msg("the energy of the tasks could not be noted")
	}
}

// spend distributes the energy in a sample, and asks the loop for the tasks' activity. If
// the loop has no time, its last answer counts.
func (r *Runner) spend(now units.Instant, samples []gpu.Sample) {
	r.energy.Sample(now, samples)
	r.loop.TryLook(func(s *mapper.State) { r.energy.SetActivityOf(s.Crowded()) })
}
