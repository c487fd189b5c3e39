package runner

import (
	"context"
	"time"

	"carma/runner/sse"
)

// watchLiveAs does what watchLive does for a user of a cluster, with the tasks that the
// user may know of.
func (r *Runner) watchLiveAs(ctx context.Context, s *sse.Sender) error {
	var seq int64
	var before *dashboardState
	for still := 0; ; still++ {
		if p, err := r.picture(ctx); err != nil {
			return err
		} else if before == nil || still >= liveBeat || !p.same(before) {
			seq, still = seq+1, 0
			if err := s.Write(p.event(before, seq, r.viewOf(ctx))); err != nil {
				return err
			}
			before = p
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(liveEvery):
		}
	}
}
