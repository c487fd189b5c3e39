package mapper

import (
	"time"

	"carma/mapper/interference"
	"carma/mapper/model"
	"carma/mapper/predict"
	"carma/mapper/reserve"
)

// cache holds results derived from the state, so that a scheduling cycle need not compute
// them again for every task and GPU. They change no decision: clones and snapshots leave
// them out, and a property test drops them at random.
type cache struct {
	candidates candidates
	table      scoreTable
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
	pl.cache = cache{clock: pl.cache.clock + 1, forgotten: pl.cache.clock, table: scoreTable{version: pl.cache.table.version}}
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
	at      int          // the clock when it fitted nowhere, or 0 if never
	head    reserve.Head // the head reservation at that time
	open    []*model.GPU // for a task on several GPUs: the GPUs that would have taken a part of it then
	learned int          // the predictor's version when asks was computed
	asks    []int
}

// candidatesOf returns the candidate numbers of a task, one for each of its GPUs.
func (pl *placer) candidatesOf(t *model.Task) []int {
	if tried := pl.tried(t); tried.learned == pl.predictor.Version() && tried.asks != nil {
		return tried.asks
	}
	if len(pl.cache.candidates.all) >= maxCandidates {
		pl.dropCache()
	}
	done := 0.0
	if t.Phase == model.Suspended {
		done = t.Done // its attempt continues
	}
	left, basis := pl.predictor.WorkLeft(t, done)
	if basis == predict.Guessed {
		left = predict.RoundRunTime(left)
	}
	tried := pl.tried(t)
	if len(tried.asks) != t.GPUs {
		tried.asks, tried.at = make([]int, t.GPUs), 0
	}
	key := candidateKey{doubt: pl.predictor.Doubt(t, t.Doubt), prior: pl.predictor.Prior(t), kind: pl.predictor.KindNumber(t.Kind), left: left, basis: basis, domain: pl.predictor.MPSDomainOf(t)}
	for i, before := range tried.asks {
		key.load = t.LoadOn(i)
		if pl.cache.candidates.is(before, &key) {
			continue // usually the change concerned other tasks
		}
		if id := pl.cache.candidates.id(key, func(l interference.Load) predict.Demand { return pl.predictor.Demand(l, t) }); id != before {
			tried.asks[i], tried.at = id, 0
		}
	}
	tried.learned = pl.predictor.Version()
	return tried.asks
}
