package mapper

import (
	"time"

	"carma/internal/units"
	"carma/mapper/interference"
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
	shrinks    units.Instant // no grant is checked before, or 0 if not known
	dirty      dirtySet
}

// emptyCache is the cache of a new state.
var emptyCache cache

// gpuCache holds the cached results of a GPU.
type gpuCache struct {
	forecast  memo
	changes   int      // incremented when the forecast is dropped
	state     gpuState // in the last scheduling cycle
	changedAt int      // the clock when it last changed
	dirty     gpuDirty
	marks     int // incremented by each mark
	ready     gpuReadyTime
}

// taskCache holds the cached results of a task.
type taskCache struct {
	tried  rejectedAt // while it waits
	run    expectedRun
	weight weight // in the backlog
}

// dropCache drops all cached results. Raising learned makes the results of tasks stale.
func (s *State) dropCache() {
	s.inventoryChanged()
	s.queue.sums = backlog{}
	s.predictor.derived = predictCache{learned: s.predictor.derived.learned + 1, timed: s.predictor.derived.timed + 1}
	s.cache = cache{clock: s.cache.clock + 1, forgotten: s.cache.clock, table: scoreTable{version: s.cache.table.version}}
	for _, g := range s.gpus {
		g.cache = gpuCache{}
	}
}

// forecastValid is the time for which the forecast of a GPU stays valid while nothing
// changes there. After that, rejected tasks are tried again, because the running ones
// have come closer to their end.
const forecastValid = 5 * time.Minute

// rejectedAt holds the result of a waiting task's last try.
type rejectedAt struct {
	at      int             // the clock when it fitted nowhere, or 0 if never
	head    headReservation // the head reservation at that time
	open    []*GPU          // for a task on several GPUs: the GPUs that would have taken a part of it then
	learned int             // cache.learned when asks was computed
	asks    []int
}

// candidatesOf returns the candidate numbers of a task, one for each of its GPUs.
func (s *State) candidatesOf(t *Task) []int {
	if t.cache.tried.learned == s.predictor.derived.learned && t.cache.tried.asks != nil {
		return t.cache.tried.asks
	}
	if len(s.cache.candidates.all) >= maxCandidates {
		s.dropCache()
	}
	done := 0.0
	if t.Phase == Suspended {
		done = t.Done // its attempt continues
	}
	left, basis := s.predictor.left(t, done)
	if basis == guessed {
		left = inSteps(left)
	}
	tried := &t.cache.tried
	if len(tried.asks) != t.GPUs {
		tried.asks, tried.at = make([]int, t.GPUs), 0
	}
	key := candidateKey{doubt: s.predictor.doubtOf(t, t.Doubt), prior: s.predictor.priorOf(t), kind: s.predictor.pairs.number(t.Kind), left: left, basis: basis, domain: s.predictor.mpsDomainOf(t)}
	for i, before := range tried.asks {
		key.load = t.load(i)
		if s.cache.candidates.is(before, &key) {
			continue // usually the change concerned other tasks
		}
		if id := s.cache.candidates.id(key, func(l interference.Load) loadDemand { return s.predictor.loadDemand(l, t) }); id != before {
			tried.asks[i], tried.at = id, 0
		}
	}
	tried.learned = s.predictor.derived.learned
	return tried.asks
}
