package mapper

import (
	"time"

	"carma/internal/units"
	"carma/mapper/interference"
)

// Notes are cached results that follow from the state. They save a pass from
// computing them again for every task and GPU. They change no decision: clones and
// snapshots leave them out, and a property test drops them at random.
type notes struct {
	newcomers newcomers
	table     answerTable
	circles   map[circle]int32 // their numbers
	learned   int              // goes up by 1 when expectations change; starts at 1
	timed     int              // likewise, for expected run times alone
	clock     int              // goes up by 1 at each pass, and at each change of a GPU within one
	began     int              // the clock when the pass before the last change of it began
	forgotten int              // the clock when all notes on tries were last dropped
	ceilings  [2]ceiling       // results of canFit; nil: none yet
	tested    units.Instant    // when a sick GPU is due for a test, and those are over
	runs      runTimes
	ages      ages
	backlog   backlog
	most      ceiling // of what can be booked on empty GPUs; nil: not worked out
	measured  []Measured
	tries     tries
	shrinks   units.Instant // no grant is looked at before; 0: not known
	looks     looks
}

// noNotes are the notes of a new state.
var noNotes = notes{learned: 1, timed: 1}

// gpuNotes are the notes on a GPU.
type gpuNotes struct {
	outlook memo
	changes int  // counts what drops the outlook
	face    face // in the last pass
	fresh   int  // the clock when it last looked different
	looks   gpuLooks
	marks   int // counts what is marked
	ready   readyFor
}

// taskNotes are the notes on a task.
type taskNotes struct {
	tried  tried // while it waits
	run    expectedRun
	weight weight // in the backlog
}

// forgetNotes drops all notes. Raising learned makes the notes on tasks stale.
func (s *State) forgetNotes() {
	s.notes = notes{learned: s.notes.learned + 1, timed: s.notes.timed + 1, clock: s.notes.clock + 1, forgotten: s.notes.clock, table: answerTable{version: s.notes.table.version}}
	for _, g := range s.gpus {
		g.notes = gpuNotes{}
	}
}

// lookAgain is how long the outlook of a GPU is valid while nothing changes
// there. After that, rejected tasks are tried again, because the running ones
// have come closer to their end.
const lookAgain = 5 * time.Minute

// tried is what a waiting task remembers about its last try.
type tried struct {
	at      int      // the clock when it fitted nowhere; 0: never
	kept    keptFree // the GPUs that were kept free then
	open    []*GPU   // of a task on several GPUs: those that would have taken a part of it then
	learned int      // notes.learned when asks was made
	asks    []int
}

// asks returns the numbers of a task as a newcomer, one for each of its GPUs.
func (s *State) asks(t *Task) []int {
	if t.notes.tried.learned == s.notes.learned && t.notes.tried.asks != nil {
		return t.notes.tried.asks
	}
	if len(s.notes.newcomers.all) >= maxNewcomers {
		s.forgetNotes()
	}
	done := 0.0
	if t.Phase == Away {
		done = t.Done // its attempt goes on
	}
	left, basis := s.left(t, done)
	if basis == guessed {
		left = inSteps(left)
	}
	tried := &t.notes.tried
	if len(tried.asks) != t.GPUs {
		tried.asks, tried.at = make([]int, t.GPUs), 0
	}
	key := newcomerKey{doubt: s.doubtOf(t, t.Doubt), mix: s.mixOf(t), kind: s.pairs.number(t.Kind), left: left, basis: basis, circle: s.circleOf(t)}
	for i, before := range tried.asks {
		key.load = t.load(i)
		if s.notes.newcomers.is(before, &key) {
			continue // most often what was learned is about others
		}
		if id := s.notes.newcomers.id(key, func(l interference.Load) demand { return s.demandOf(l, t) }); id != before {
			tried.asks[i], tried.at = id, 0
		}
	}
	tried.learned = s.notes.learned
	return tried.asks
}
