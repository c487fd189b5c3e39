package place

import (
	"time"

	"carma/mapper/model"
	"carma/mapper/reserve"
)

// Results derived from the state are cached, so that a scheduling cycle need not compute
// them again for every task and GPU. They change no decision: clones and snapshots leave
// them out, and a property test drops them at random.

// gpuCache holds the cached results of a GPU.
type gpuCache struct {
	forecast  memo
	state     gpuState // in the last scheduling cycle
	changedAt int      // the clock when it last changed
	dirty     gpuDirty
	ready     gpuReadyTime
}

// cacheOf returns what is derived of a GPU, or of a copy of one.
func cacheOf(g *model.GPU) *gpuCache {
	c, _ := g.Observer().(*gpuCache)
	if c == nil {
		c = &gpuCache{}
		g.SetObserver(c)
	}
	return c
}

// DropCache drops all cached results. The predictor's new version makes the
// results of tasks stale.
func (pl *Placer) DropCache() {
	pl.DropDerived()
	pl.queue.DropBacklog()
	pl.predictor.DropDerived()
	pl.dropped, pl.rejections = pl.clock, nil
	pl.tracker.drop()
	pl.scorer.drop()
	for _, g := range pl.GPUList() {
		g.SetObserver(nil)
	}
}

// ForecastValid is the time for which the forecast of a GPU stays valid while nothing
// changes there. After that, rejected tasks are tried again, because the running ones
// have come closer to their end.
const ForecastValid = 5 * time.Minute

// rejectedAt holds the result of a waiting task's last try.
type rejectedAt struct {
	at   int          // the clock when it fitted nowhere, or 0 if never
	head reserve.Head // the head reservation at that time
	open []*model.GPU // for a task on several GPUs: the GPUs that would have taken a part of it then
}

// candidatesOf returns the candidate numbers of a task, one for each of its GPUs. If they
// have changed, the task is tried on every GPU again.
func (pl *Placer) candidatesOf(t *model.Task) []int {
	if ids := pl.scorer.current(t); ids != nil {
		return ids
	}
	if pl.scorer.full() {
		pl.DropCache()
	}
	ids, changed := pl.scorer.candidatesOf(t)
	if changed {
		pl.tried(t).at = 0
	}
	return ids
}
