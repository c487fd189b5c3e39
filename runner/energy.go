package runner

import (
	"carma/internal/units"
	"carma/mapper"
	"carma/mapper/model"
	"carma/runner/energy"
	"carma/runner/gpu"
	"carma/runner/record"
)

// energyKey is the key in the journal's meta for the part of the energy accounts
// that a killed daemon would lose.
const energyKey = "energy"

// loadEnergy loads the energy accounts of an earlier daemon. Unreadable parts are left out.
func (r *Runner) loadEnergy() {
	parents := map[string]string{}
	for id, d := range r.gpus.Devices() {
		parents[string(id)] = d.Parent
	}
	r.energy = energy.New(r.Clock.Now(), parents)
	body, err := r.Journal.Meta(energyKey)
	if err != nil {
		return // no accounts are stored, or the journal's check reports the error
	}
	err = r.energy.Load(body, func(key gpu.AttemptKey) bool {
		t, ok := r.loop.State().Task(key.Task)
		return ok && t.Alive() != nil && t.Alive().N == key.Attempt
	})
	if err != nil {
		r.Log.Warn().Err(err).Msg("the energy that was noted cannot be read; it counts from now on")
	}
}

// storeEnergy stores the energy accounts. If that fails, a daemon that is killed loses
// more of them.
func (r *Runner) storeEnergy() {
	body := r.energy.Save(r.Clock.Now())
	if body == nil {
		return
	}
	if err := r.Journal.SetMeta(energyKey, body); err != nil {
		r.energy.MarkUnsaved()
		r.Log.Debug().Err(err).Msg("the energy of the tasks could not be noted")
	}
}

// energyOf returns the joules that an attempt has used, or 0 if none or unknown.
func (r *Runner) energyOf(rec *record.Record, attempt int) float64 {
	if joules, ended := rec.Energy[attempt]; ended {
		return joules
	}
	return energy.Hundredths(r.energy.Joules(gpu.AttemptKey{Task: rec.ID(), Attempt: attempt}))
}

// spend distributes the energy in a sample, and asks the loop for the tasks' activity. If
// the loop has no time, its last answer counts.
func (r *Runner) spend(now units.Instant, samples []gpu.Sample) {
	r.energy.Sample(now, samples)
	r.loop.TryLook(func(s *mapper.State) { r.energy.SetActivity(busyOf(s.Crowded())) })
}

// busyOf returns the SM activity that each task causes on some GPUs.
func busyOf(pages []model.GPU) map[string]map[model.TaskID]float64 {
	busy := map[string]map[model.TaskID]float64{}
	for i := range pages {
		g := &pages[i]
		of := map[model.TaskID]float64{}
		for j := range g.Residents {
			of[g.Residents[j].Task] = g.Residents[j].Load.SMACT * g.Residents[j].Speed
		}
		busy[string(g.ID)] = of
	}
	return busy
}
