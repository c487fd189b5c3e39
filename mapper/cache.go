package mapper

import (
	"time"

	"carma/mapper/model"
	"carma/mapper/reserve"
)

// cache holds results derived from the state, so that a scheduling cycle need not compute
// them again for every task and GPU. They change no decision: clones and snapshots leave
// them out, and a property test drops them at random.
type cache struct {
	clock      int // incremented at each scheduling cycle, and at each change of a GPU within one
	began      int // the clock when the cycle before its last change began
	forgotten  int // the clock when all cached rejections were last dropped
	rejections rejectedCache
	dirty      dirtySet
}

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

// dropCache drops all cached results. Raising learned makes the results of tasks stale.
func (pl *placer) dropCache() {
	pl.DropDerived()
	pl.queue.DropBacklog()
	pl.predictor.DropDerived()
	pl.cache = cache{clock: pl.cache.clock + 1, forgotten: pl.cache.clock}
	pl.scorer.drop()
	for _, g := range pl.GPUList() {
		g.SetObserver(nil)
	}
}

// forecastValid is the time for which the forecast of a GPU stays valid while nothing
// changes there. After that, rejected tasks are tried again, because the running ones
// have come closer to their end.
const forecastValid = 5 * time.Minute

// rejectedAt holds the result of a waiting task's last try.
type rejectedAt struct {
	at   int          // the clock when it fitted nowhere, or 0 if never
	head reserve.Head // the head reservation at that time
	open []*model.GPU // for a task on several GPUs: the GPUs that would have taken a part of it then
}

// candidatesOf returns the candidate numbers of a task, one for each of its GPUs. If they
// have changed, the task is tried on every GPU again.
func (pl *placer) candidatesOf(t *model.Task) []int {
	if ids := pl.scorer.current(t); ids != nil {
		return ids
	}
	if pl.scorer.full() {
		pl.dropCache()
	}
	ids, changed := pl.scorer.candidatesOf(t)
	if changed {
		pl.tried(t).at = 0
	}
	return ids
}
