package admission

import (
	"slices"
	"strings"

	"carma/mapper/model"
	"carma/mapper/words"
	"carma/runner/api"
	"carma/runner/record"
	"carma/runner/request"
)

// conditions maps the name in a request to the kind of dependency on a task.
var conditions = map[string]model.Condition{"": model.AfterOK, "ok": model.AfterOK, "any": model.AfterAny, "started": model.AfterStarted}

// after returns the unmet dependencies of a new task. It refuses the submission if a
// dependency can never be met.
func (p *batchPlan) after(sub api.Submit, id model.TaskID) ([]model.Dependency, error) {
	var all []model.Dependency
	add := func(of model.TaskID, c model.Condition) {
		if d := (model.Dependency{Task: of, Condition: c}); !slices.Contains(all, d) {
			all = append(all, d)
		}
	}
	for _, d := range sub.After {
		c := conditions[d.Condition]
		if d.Part != "" {
			ids := p.parts[d.Part]
			if d.Part == sub.Part || len(ids) == 0 {
				return nil, request.Errorf(422, "--after: no part %s comes before task %d in this submission", d.Part, id)
			}
			all = slices.Grow(all, len(ids))
			for _, of := range ids {
				all = append(all, model.Dependency{Task: of, Condition: c})
			}
			continue
		}
		recs, err := p.cfg.Find.Referred(d.Task)
		if err != nil {
			return nil, err
		}
		for _, rec := range recs {
			if _, open := p.cfg.Loop.State().Task(rec.ID()); open {
				add(rec.ID(), c)
				continue
			}
			if err := p.past(rec, d.Task, c); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// past checks a task that has ended against a condition on it.
func (p *batchPlan) past(rec *record.Record, ref string, c model.Condition) error {
	if !rec.Task.Phase.Finished() { // the task's end is not in the journal yet
		if err := p.cfg.Loop.Flush(); err != nil {
			return err
		}
		again, err := p.cfg.Find.Find(rec.ID().String())
		if err != nil {
			return err
		}
		rec = again
	}
	t := &rec.Task
	started := slices.ContainsFunc(t.Attempts, func(a model.Attempt) bool { return a.Started > 0 })
	if c.Follows(t.Phase, started) {
		return nil
	}
	return request.Errorf(422, "--after %s: task %d %s, so nothing would ever run; --after %s:any waits for its end only", ref, rec.ID(), strings.TrimPrefix(words.Ended(t.Phase), "it "), ref)
}
