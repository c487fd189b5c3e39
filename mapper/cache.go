package mapper

import (
	"time"

	"carma/internal/units"
	"carma/mapper/interference"
)

// Notes are cached results that follow from the state. They save a pass from
// computing them again for every task and GPU. They change no decision: clones and
// snapshots leave them out, and a property test drops them at random.
type cache struct {
	newcomers candidates
	table     scoreTable
	circles   map[mpsDomain]int32 // their numbers
	learned   int                 // goes up by 1 when expectations change; starts at 1
	timed     int                 // likewise, for expected run times alone
	clock     int                 // goes up by 1 at each pass, and at each change of a GPU within one
	began     int                 // the clock when the pass before the last change of it began
	forgotten int                 // the clock when all notes on tries were last dropped
	ceilings  [2]ceiling          // results of canFit; nil: none yet
	tested    units.Instant       // when a sick GPU is due for a test, and those are over
	runs      runTimes
	ages      ages
	backlog   backlog
	most      ceiling // of what can be booked on empty GPUs; nil: not worked out
	measured  []EstimateError
	tries     rejectedCache
	shrinks   units.Instant // no grant is looked at before; 0: not known
	looks     dirtySet
}

// emptyCache are the notes of a new state.
var emptyCache = cache{learned: 1, timed: 1}

// gpuCache are the notes on a GPU.
type gpuCache struct {
	outlook memo
	changes int      // counts what drops the outlook
	face    gpuState // in the last pass
	fresh   int      // the clock when it last looked different
	looks   gpuDirty
	marks   int // counts what is marked
	ready   gpuReadyTime
}

// taskCache are the notes on a task.
type taskCache struct {
	tried  rejectedAt // while it waits
	run    expectedRun
	weight weight // in the backlog
}

// dropCache drops all notes. Raising learned makes the notes on tasks stale.
func (s *State) dropCache() {
	s.cache = cache{learned: s.cache.learned + 1, timed: s.cache.timed + 1, clock: s.cache.clock + 1, forgotten: s.cache.clock, table: scoreTable{version: s.cache.table.version}}
	for _, g := range s.gpus {
		g.cache = gpuCache{}
	}
}

// forecastValid is how long the outlook of a GPU is valid while nothing changes
// there. After that, rejected tasks are tried again, because the running ones
// have come closer to their end.
const forecastValid = 5 * time.Minute

// rejectedAt is what a waiting task remembers about its last try.
type rejectedAt struct {
	at      int             // the clock when it fitted nowhere; 0: never
	kept    headReservation // the GPUs that were kept free then
	open    []*GPU          // of a task on several GPUs: those that would have taken a part of it then
	learned int             // notes.learned when asks was made
	asks    []int
}

// candidatesOf returns the numbers of a task as a newcomer, one for each of its GPUs.
func (s *State) candidatesOf(t *Task) []int {
	if t.cache.tried.learned == s.cache.learned && t.cache.tried.asks != nil {
		return t.cache.tried.asks
	}
	if len(s.cache.newcomers.all) >= maxCandidates {
		s.dropCache()
	}
	done := 0.0
	if t.Phase == Suspended {
		done = t.Done // its attempt goes on
	}
	left, basis := s.left(t, done)
	if basis == guessed {
		left = inSteps(left)
	}
	tried := &t.cache.tried
	if len(tried.asks) != t.GPUs {
		tried.asks, tried.at = make([]int, t.GPUs), 0
	}
	key := candidateKey{doubt: s.doubtOf(t, t.Doubt), mix: s.priorOf(t), kind: s.pairs.number(t.Kind), left: left, basis: basis, circle: s.mpsDomainOf(t)}
	for i, before := range tried.asks {
		key.load = t.load(i)
		if s.cache.newcomers.is(before, &key) {
			continue // most often what was learned is about others
		}
		if id := s.cache.newcomers.id(key, func(l interference.Load) loadDemand { return s.loadDemand(l, t) }); id != before {
			tried.asks[i], tried.at = id, 0
		}
	}
	tried.learned = s.cache.learned
	return tried.asks
}
