package mapper

import (
	"slices"
	"time"

	"carma/mapper/units"

	"carma/mapper/interference"
)

// Notes are what was worked out from the state, so that a pass need not work it
// out again for every task and GPU. Nothing in them decides: a clone and a
// snapshot leave them out, and a property test tears them up at random.
type notes struct {
	newcomers newcomers
	learned   int        // counts what changes expectations, from 1
	passes    int        // so many since the notes were begun
	ceilings  [2]ceiling // what canFit has worked out; nil: nothing yet
}

// noNotes are those of a state that nothing was worked out from.
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

// forgetNotes drops all of them. Those on tasks are of expectations and passes
// that are over then.
func (s *State) forgetNotes() {
	s.notes = notes{learned: s.notes.learned + 1, passes: s.notes.passes}
	for _, g := range s.gpus {
		g.notes = gpuNotes{}
	}
}

// lookAgain is how long what policy carma has worked out about a GPU holds
// while nothing changes there. After it tasks that were turned down are tried
// again: those that run have come closer to their end.
const lookAgain = 5 * time.Minute

// newcomer is what policy carma knows of a task that it may place on a GPU.
type newcomer struct {
	newcomerKey
	demand demand
}

type newcomerKey struct {
	load  interference.Load
	left  float64 // seconds alone
	basis basis
}

// answer is what a newcomer is told.
type answer struct {
	added  float64
	finish float64 // when it ends, from now
	no     refusal
}

// memo is what policy carma has worked out about a GPU.
type memo struct {
	checked   units.Instant // when it was last found to hold
	valid     bool
	at        units.Instant // for which instant
	extra     float64       // SM activity that is not expected
	parts     []part        // those that are there, with their outlook
	newcomers []int         // who was answered, by number
	answers   []answer      // to them
}

// memo returns what is worked out about a GPU, brought up to date.
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

// forget drops what is worked out about a GPU after a change there.
func (g *GPU) forget() { g.notes.outlook.valid, g.notes.changes = false, g.notes.changes+1 }

// answer returns what a GPU tells a newcomer, which is known by number.
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

// newcomers gives each a number.
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

// maxNewcomers bounds the memory of those that do not come any more.
const maxNewcomers = 4096

// tried is what a waiting task remembers of its last try.
type tried struct {
	pass    int  // in which it fitted nowhere; 0: none
	hold    hold // what was kept free then
	learned int  // notes.learned when asks was made
	asks    []int
}

// asks are the numbers of a task as a newcomer, by GPU.
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

// face is what a GPU looks like to a task that wants to go there.
type face struct {
	rule    Rule
	free    units.Bytes
	foreign units.Bytes
	changes int
	at      units.Instant
	extra   float64
}

// faces notes which GPUs look different than in the pass before.
func (s *State) faces() {
	s.notes.passes++
	for _, g := range s.gpus {
		f := face{s.rejectAny(g), s.free(g), g.Foreign, g.notes.changes, s.outlookAt(g), s.extra(g)}
		if f != g.notes.face {
			g.notes.face, g.notes.fresh = f, s.notes.passes
		}
	}
}

// turnedDown is the pass in which every GPU that has not changed since turned
// a task down; 0: there is none.
func (s *State) turnedDown(t *Task) int {
	if s.policy.pick != nil {
		s.asks(t) // what it is told may have changed
	}
	if t.GPUs > 1 || t.notes.tried.hold.Task != s.hold.Task || t.notes.tried.hold.Until != s.hold.Until || !slices.Equal(t.notes.tried.hold.GPUs, s.hold.GPUs) {
		return 0
	}
	return t.notes.tried.pass
}
