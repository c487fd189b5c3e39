package admission

import (
	"cmp"
	"context"
	"strings"

	"carma/mapper"
	"carma/mapper/model"
	"carma/mapper/words"
	"carma/runner/api"
	"carma/runner/record"
	"carma/runner/request"
)

// Preview returns the result that a submission would have now. Nothing is submitted.
func (a *Controller) Preview(ctx context.Context, who request.Caller, s api.Submission) (api.Preview, error) {
	in, warn, err := a.take(context.WithValue(ctx, previewKey{}, true), who, s)
	if err != nil {
		return api.Preview{}, err
	}
	var events []model.Event
	var recs []*record.Record
	var then *mapper.State
	var refused error
	err = a.cfg.Loop.Look(ctx, func(now *mapper.State) {
		clear(a.names) // the names of an earlier batch
		if events, recs, refused = a.plan(a.cfg.Clock.Now(), in); refused == nil {
			then = now.Clone()
		}
	})
	if err = cmp.Or(err, refused); err != nil {
		return api.Preview{}, err
	}
	started := map[model.TaskID]model.Launch{}
	for _, ev := range events {
		for _, d := range then.Step(ev) {
			if l, ok := d.(model.Launch); ok {
				started[l.Task] = l
			}
		}
	}
	answer := api.Preview{Group: recs[0].Group, Warnings: warn}
	for i, rec := range recs {
		answer.Tasks = append(answer.Tasks, a.previewTask(then, rec, in.tasks[i], started))
	}
	return answer, nil
}

// previewKey marks the context of a preview: an image that cannot be had does not
// end it.
type previewKey struct{}

// unknownImage returns the warning of a preview whose image is unknown, or "" for other
// errors and outside previews.
func unknownImage(ctx context.Context, err error) string {
	refused, ok := err.(*request.Error)
	if ok && ctx.Value(previewKey{}) != nil && strings.HasPrefix(refused.Text, "unknown image ") {
		return refused.Text + "; nothing is known of it"
	}
	return ""
}

func (a *Controller) previewTask(then *mapper.State, rec *record.Record, c *candidate, started map[model.TaskID]model.Launch) api.PreviewTask {
	v := api.PreviewTask{
		Name: rec.Name, Image: rec.Submit.Source(), Command: rec.Submit.Command, GPUCount: rec.Submit.GPUs,
		Estimate: record.EstimateView(Booking(c.est), c.est.Detail),
	}
	if t, ok := then.Task(rec.ID()); ok {
		v.Need = int64(t.NextGrant)
		v.Estimate = record.EstimateView(t.Estimate, record.EstimateDetail(t.Estimate, c.est.Detail, rec.Submit.Exclusive))
		if t.Phase == model.Estimating {
			v.Estimate.Detail = c.est.Detail
			v.Waits = "its first steps would run on the CPU first, to see what memory it needs"
		}
	}
	if l, ok := started[rec.ID()]; ok {
		v.Starts = true
		for _, g := range l.Grants {
			v.GPUs = append(v.GPUs, a.cfg.GPUs.Ref(g.GPU))
		}
		return v
	}
	if why, ok := then.Why(rec.ID()); ok && why.Binding.Code != "" {
		v.Waits = words.Why(why)
	}
	return v
}
