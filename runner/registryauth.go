package runner

import (
	"carma/mapper/model"
	"carma/runner/pull"
	"carma/runner/record"
)

// pullPolicy returns the policy that a task asks for, or the default.
func (r *Runner) pullPolicy(asked string) string {
	if asked != "" {
		return asked
	}
	return r.live().Pull
}

// keepCredentials keeps the submitter's credentials for the tasks whose image could not be
// looked up.
func (r *Runner) keepCredentials(by pull.Credentials, recs []*record.Record) {
	var waiting []int64
	for _, rec := range recs {
		if rec.ImageID == "" && !rec.Submit.Bare() {
			waiting = append(waiting, int64(rec.ID()))
		}
	}
	if len(waiting) == 0 {
		return
	}
	r.pull.Keep(waiting, by, func(task int64) bool {
		rec, _ := r.records.Get(model.TaskID(task))
		return rec != nil && !rec.Task.Phase.Finished()
	})
}
