package runner

import (
	"context"

	"carma/containers"
	"carma/runner/api"
	"carma/runner/record"
	"carma/runner/request"
)

// submitJob submits a Job of a cluster as a task of its owner. carma does not change the pod of
// a Job.
func (r *Runner) submitJob(ctx context.Context, who request.Caller, s api.Submit, id containers.JobID) (*record.Record, []string, error) {
	c, lines, err := r.prepare(ctx, who, s)
	if err != nil {
		return nil, nil, err
	}
	c.rec.Job = &record.Job{JobID: id}
	c.rec.Says.Unbuffered = false
	var recs []*record.Record
	sub := api.Submission{Tasks: []api.Submit{s}}
	if err := r.loop.Do(ctx, r.addition(sub, &submissionBatch{who: who, tasks: []*admission{c}}, nil, &recs)); err != nil {
		return nil, nil, err
	}
	return recs[0], lines, nil
}
