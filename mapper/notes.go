package mapper

import (
	"slices"
	"time"

	"carma/mapper/units"

	"carma/mapper/interference"
)

// Notes are cached results that follow from the state. They save a pass from
// computing them again for every task and GPU. They change no decision: clones and
// snapshots leave them out, and a property test drops them at random.
type notes struct {
	newcomers newcomers
	learned   int        // goes up by 1 when expectations change; starts at 1
	passes    int        // number of passes since the notes were begun
	ceilings  [2]ceiling // results of canFit; nil: none yet
}

// noNotes are the notes of a new state.
var noNotes = notes{learned: 1}

// gpuNotes are the notes on a GPU.
type gpuNotes struct {
	outlook memo
	changes int  // counts what drops the outlook
	face    face // in the last pass
	fresh   int  // the pass in which it last looked different
}

// taskNotes are the notes on a task.
type taskNotes struct {
	tried tried // while it waits
	run   expectedRun
}

// forgetNotes drops all notes. Raising learned makes the notes on tasks stale.
func (s *State) forgetNotes() {
	s.notes = notes{learned: s.notes.learned + 1, passes: s.notes.passes}
	for _, g := range s.gpus {
		g.notes = gpuNotes{}
	}
}

// lookAgain is how long the outlook of a GPU is valid while nothing changes
// there. After that, rejected tasks are tried again, because the running ones
// have come closer to their end.
const lookAgain = 5 * time.Minute

// newcomer is what policy carma knows about a task that it may place on a GPU.
type newcomer struct {
	newcomerKey
	demand demand
}

type newcomerKey struct {
	load  interference.Load
	left  float64 // seconds alone
	basis basis
}

// answer is the result of weighing a newcomer on a GPU.
type answer struct {
	added  float64
	finish float64 // when it ends, from now
	no     refusal
}

// memo is the outlook of a GPU and the answers that were derived from it.
type memo struct {
	checked   units.Instant // when it was last found to be valid
	valid     bool
	at        units.Instant // for which instant
	extra     float64       // SM activity that the tasks do not explain
	parts     []part        // the tasks there, with their outlook
	newcomers []int         // the numbers of the newcomers that were weighed
	answers   []answer      // their results, in the same order
}

// memo returns the memo of a GPU, brought up to date.
func (s *State) memo(g *GPU) *memo {
	m := &g.notes.outlook
	if m.valid && m.checked == s.now {
		return m
	}
	at, extra := s.outlookAt(g), s.extra(g)
	if !m.valid || m.at != at || m.extra != extra {
		*m = memo{valid: true, at: at, extra: extra, parts: s.parts(m.parts[:0], g, at), newcomers: m.newcomers[:0], answers: m.answers[:0]}
		outlook(m.parts)
	}
	m.checked = s.now
	return m
}

// outlookAt is the instant for which an outlook is made: it moves on in steps.
func (s *State) outlookAt(g *GPU) units.Instant {
	return g.ChangedAt.Add(s.now.Sub(g.ChangedAt) / lookAgain * lookAgain)
}

// forget drops the outlook of a GPU after a change there.
func (g *GPU) forget() { g.notes.outlook.valid, g.notes.changes = false, g.notes.changes+1 }

// answer returns the result of weighing the newcomer with a number on a GPU.
func (s *State) answer(g *GPU, id int) answer {
	m := s.memo(g)
	if i := slices.Index(m.newcomers, id); i >= 0 {
		return m.answers[i]
	}
	var a answer
	a.added, a.finish, a.no = s.beside(m.parts, &s.notes.newcomers.all[id])
	m.newcomers, m.answers = append(m.newcomers, id), append(m.answers, a)
	return a
}

// newcomers numbers the newcomers.
type newcomers struct {
	all []newcomer
	ids map[newcomerKey]int
}

func (n *newcomers) id(who newcomerKey) int {
	id, ok := n.ids[who]
	if !ok {
		if n.ids == nil {
			n.ids = map[newcomerKey]int{}
		}
		id = len(n.all)
		n.all = append(n.all, newcomer{who, demandOf(who.load)})
		n.ids[who] = id
	}
	return id
}

// maxNewcomers is the number of newcomers at which the notes are dropped, so that
// old ones do not take memory for ever.
const maxNewcomers = 4096

// tried is what a waiting task remembers about its last try.
type tried struct {
	pass    int      // the pass in which it fitted nowhere; 0: none
	kept    keptFree // the GPUs that were kept free then
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
	left, basis := s.left(t, 0)
	asks := make([]int, t.GPUs)
	for i := range asks {
		asks[i] = s.notes.newcomers.id(newcomerKey{t.load(i), left, basis})
	}
	if !slices.Equal(asks, t.notes.tried.asks) {
		t.notes.tried.pass = 0
	}
	t.notes.tried.asks, t.notes.tried.learned = asks, s.notes.learned
	return asks
}

// face is what a task that wants a GPU sees of it.
type face struct {
	rule    Rule
	free    units.Bytes
	foreign units.Bytes
	changes int
	at      units.Instant
	extra   float64
}

// faces notes which GPUs look different from the pass before.
func (s *State) faces() {
	s.notes.passes++
	for _, g := range s.gpus {
		f := face{s.rejectAny(g), s.free(g), g.Foreign, g.notes.changes, s.outlookAt(g), s.extra(g)}
		if f != g.notes.face {
			g.notes.face, g.notes.fresh = f, s.notes.passes
		}
	}
}

// turnedDown is the pass in which a task was rejected by every GPU. It still
// counts for the GPUs that have not changed since. 0: there is none.
func (s *State) turnedDown(t *Task) int {
	if s.policy.pick != nil {
		s.asks(t) // the answers may have changed
	}
	if t.GPUs > 1 || t.notes.tried.kept.Task != s.kept.Task || t.notes.tried.kept.Until != s.kept.Until || !slices.Equal(t.notes.tried.kept.GPUs, s.kept.GPUs) {
		return 0
	}
	return t.notes.tried.pass
}
