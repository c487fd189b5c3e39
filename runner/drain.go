package runner

import (
	"context"
	"sync"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/loop"
	"carma/runner/record"
	"carma/runner/request"
	"carma/runner/rights"
)

// drainTail bounds the remaining work after the last task of a draining daemon, such as
// removing its container. The loop runs until then.
const drainTail = 10 * time.Second

const drainReason = "the daemon drains: nothing is started any more, and it ends with its last running task; carma daemon goes on with the queue"

// Drain makes the daemon start nothing more and end when no task runs. Queued tasks stay
// queued, for the next daemon. Only root and the admin group may call it.
func (r *Runner) Drain(ctx context.Context, who request.Caller) (api.Info, error) {
	if err := r.authz.AuthorizeServer(who, rights.Drain, "", ""); err != nil {
		return api.Info{}, err
	}
	info, err := r.overview.Info(ctx)
	if err != nil {
		return info, err
	}
	err = r.loop.Do(ctx, &loop.Change{Events: func(now units.Instant) ([]model.Event, []*record.Record, error) {
		if r.draining.Swap(true) {
			return nil, nil, nil
		}
		r.Log.Info().Int("running", r.loop.State().Placed()).Msg("draining: nothing is started any more; the daemon ends with its last task")
		return []model.Event{model.EngineChanged{At: now, Up: false, Reason: drainReason}}, nil, nil
	}})
	info.Draining = err == nil
	return info, err
}

// drained reports whether a draining daemon has no task left to wait for. Only
// the loop calls it.
func (r *Runner) drained() bool { return r.draining.Load() && r.loop.State().Placed() == 0 }

// waitAtMost returns a channel that is closed when group is done, or after
// limit.
func waitAtMost(group *sync.WaitGroup, limit time.Duration) <-chan struct{} {
	over, end := context.WithTimeout(context.Background(), limit)
	go func() { group.Wait(); end() }()
	return over.Done()
}
