package runner

import (
	"context"

	"carma/mapper"
	"carma/mapper/words"
	"carma/runner/api"
)

// Preview tells what would become of a submission now.
func (r *Runner) Preview(ctx context.Context, who Caller, s api.Submission) (api.Preview, error) {
	in, warn, err := r.take(ctx, who, s)
	if err != nil {
		return api.Preview{}, err
	}
	var events []mapper.Event
	var recs []*Record
	var then *mapper.State
	var refused error
	err = r.look(ctx, func(now *mapper.State) {
		clear(r.names) // of a round that is over
		if events, recs, refused = r.plan(r.Clock.Now(), in); refused == nil {
			then = now.Clone()
		}
	})
	if err = firstError(err, refused); err != nil {
		return api.Preview{}, err
	}
	started := map[mapper.TaskID]mapper.Launch{}
	for _, ev := range events {
		for _, d := range then.Step(ev) {
			if l, ok := d.(mapper.Launch); ok {
				started[l.Task] = l
			}
		}
	}
	answer := api.Preview{Group: recs[0].Group, Warnings: warn}
	for i, rec := range recs {
		answer.Tasks = append(answer.Tasks, r.previewTask(then, rec, in.tasks[i], started))
	}
	return answer, nil
}

func (r *Runner) previewTask(then *mapper.State, rec *Record, c *candidate, started map[mapper.TaskID]mapper.Launch) api.PreviewTask {
	v := api.PreviewTask{
		Name: rec.Name, Image: rec.Submit.Image, Command: rec.Submit.Command, GPUCount: rec.Submit.GPUs,
		Estimate: api.Estimate{Memory: int64(c.est.Memory), WholeGPU: c.est.WholeGPU, Method: c.est.Method, Detail: c.est.Detail},
	}
	if t, ok := then.Task(rec.ID()); ok {
		v.Need = int64(t.Need)
		v.Estimate = api.Estimate{Memory: int64(t.Estimate.Memory), WholeGPU: t.Estimate.WholeGPU, Method: string(t.Estimate.Method), Detail: estimateDetail(t.Estimate, c.est.Detail)}
		if t.Phase == mapper.Estimating {
			v.Estimate.Detail = c.est.Detail
			v.Waits = "its first steps would run on the CPU first, to see what memory it needs"
		}
	}
	if l, ok := started[rec.ID()]; ok {
		for _, g := range l.Grants {
			v.GPUs = append(v.GPUs, r.gpuRef(g.GPU))
		}
		return v
	}
	if why, ok := then.Why(rec.ID()); ok && why.Binding.Code != "" {
		v.Waits = words.Why(why)
	}
	return v
}
