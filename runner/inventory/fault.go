package inventory

import (
	"context"

	"carma/mapper/model"
	"carma/runner/gpu"
)

// A fatal error of a GPU lasts until the GPU is reset. The driver reports the error once,
// to the programs that listen at that time. So the journal keeps the error, and the next
// daemon passes it to its source. Persistent in the mapper lists how such an error ends.

// Remember passes to the source the GPUs that were broken when the last daemon ended, in
// this boot of the machine. It returns the GPUs that the source follows from now on.
func (g *GPUs) Remember(ctx context.Context, all []model.GPU) (broken []model.GPUID) {
	source, ok := g.source.(gpu.Remembering)
	if !ok {
		return nil
	}
	for _, one := range all {
		if b := one.Persistent; b != nil && (b.Boot == "" || b.Boot == g.boot) {
			if err := source.Remember(ctx, string(one.ID), b.Fault, b.FromDriver); err != nil {
				g.log.Error().Err(err).Str("gpu", string(one.ID)).Msg("the GPU stays out of service; a reset of it will not be noticed")
				continue
			}
			broken = append(broken, one.ID)
		}
	}
	return broken
}

// Forgive reports to the source that somebody has uncordoned GPUs.
func (g *GPUs) Forgive(ctx context.Context, ids []model.GPUID) {
	source, ok := g.source.(gpu.Remembering)
	for i := 0; ok && i < len(ids); i++ {
		if err := source.Forgive(ctx, string(ids[i])); err != nil {
			g.log.Error().Err(err).Str("gpu", string(ids[i])).Msg("what is broken about the GPU could not be forgotten")
		}
	}
}
