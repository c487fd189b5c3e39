package runner

import (
	"context"

	"carma/mapper/model"
	"carma/runner/gpu"
	"carma/runner/loop"
)

// A fatal error of a GPU lasts until the GPU is reset. The driver reports the error once,
// to the programs that listen at that time. So the journal keeps the error, and the next
// daemon passes it to its source. [mapper.Persistent] lists how such an error ends.

// remember passes to the source the GPUs that were broken when the last daemon ended, in
// this boot of the machine.
func (r *Runner) remember(ctx context.Context) {
	source, ok := r.GPUs.(gpu.Remembering)
	if !ok {
		return
	}
	for _, g := range r.loop.State().GPUs() {
		if b := g.Persistent; b != nil && (b.Boot == "" || b.Boot == r.boot) {
			if err := source.Remember(ctx, string(g.ID), b.Fault, b.FromDriver); err != nil {
				r.Log.Error().Err(err).Str("gpu", string(g.ID)).Msg("the GPU stays out of service; a reset of it will not be noticed")
				continue
			}
			r.monitor.MarkBroken(g.ID)
		}
	}
}

// forgive reports to the source that somebody has uncordoned GPUs.
func (r *Runner) forgive(ctx context.Context, ids []model.GPUID) {
	source, ok := r.GPUs.(gpu.Remembering)
	for i := 0; ok && i < len(ids); i++ {
		if err := source.Forgive(ctx, string(ids[i])); err != nil {
			r.Log.Error().Err(err).Str("gpu", string(ids[i])).Msg("what is broken about the GPU could not be forgotten")
		}
	}
	r.monitor.Wake()
}

// gpusReset says in the log and the journal that GPUs were reset.
func (r *Runner) gpusReset(ids []model.GPUID) {
	for _, id := range ids {
		r.Log.Info().Str("gpu", string(id)).Msg("the GPU was reset: it gets tasks again")
	}
	r.loop.Post(loop.Fact(model.GPUsReset{At: r.Clock.Now(), GPUs: ids}))
}
