package runner

import (
	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/loop"
	"carma/runner/record"
)

// gpusReset says in the log and the journal that GPUs were reset.
func (r *Runner) gpusReset(ids []model.GPUID) {
	for _, id := range ids {
		r.Log.Info().Str("gpu", string(id)).Msg("the GPU was reset: it gets tasks again")
	}
	r.loop.Post(loop.Fact(model.GPUsReset{At: r.Clock.Now(), GPUs: ids}))
}

// gpusFound lists the GPUs, with how they are shared now.
func (r *Runner) gpusFound(now units.Instant) model.GPUsFound {
	found := model.GPUsFound{At: now}
	reported := map[model.GPUID]model.Sharing{}
	for _, g := range r.gpus.Listed() {
		d := r.gpus.Devices()[g.ID]
		g.Sharing, _ = r.sharing.Of(d)
		g.Suspend, g.SuspendAlone, _ = r.suspending.Kind(d, r.sharing.ByMPS(g.Sharing))
		reported[g.ID] = g.Sharing
		found.GPUs = append(found.GPUs, g)
	}
	r.sharing.SetReported(reported)
	return found
}

// gpusChanged reports the GPUs, and how they are shared, to the mapper.
func (r *Runner) gpusChanged() {
	r.loop.Post(&loop.Change{Keep: true, Events: func(now units.Instant) ([]model.Event, []*record.Record, error) {
		return []model.Event{r.gpusFound(now)}, nil, nil
	}})
}
