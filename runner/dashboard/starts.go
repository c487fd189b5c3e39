package dashboard

import (
	"context"
	"time"

	"carma/mapper/model"
	"carma/runner/api"
)

func (f *Feed) roundedStart(ctx context.Context, id int64) *api.Start {
	start := f.c.Tasks.ExpectedStart(ctx, model.TaskID(id))
	if start == nil {
		return nil
	}
	now := f.c.Clock.Time()
	return &api.Start{Earliest: roundedTime(start.Earliest, now), Latest: roundedTime(start.Latest, now)}
}

// forecastStarts forecasts the starts of the first tasks in the queue, in parallel with
// the snapshots, because it takes long with many tasks.
func (f *Feed) forecastStarts(ctx context.Context) {
	for ctx.Err() == nil {
		f.mu.Lock()
		first := f.first
		f.mu.Unlock()
		begun, found := time.Now(), map[int64]*api.Start{}
		for _, id := range first {
			if start := f.roundedStart(ctx, id); start != nil && ctx.Err() == nil {
				found[id] = start
			}
		}
		f.mu.Lock()
		f.starts = found
		f.mu.Unlock()
		rest := startsCost * time.Since(begun)
		if len(first) > 0 {
			rest = max(rest, startsAge)
		}
		select {
		case <-ctx.Done():
		case <-time.After(max(rest, snapshotEvery)):
		}
	}
}
