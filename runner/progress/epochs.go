package progress

// epochs is where a run stands among its epochs, as lines said. Of lines that
// begin an epoch and lines that end one the index is right for both, as it only
// moves on.
type epochs struct {
	known   bool
	index   float64 // epochs that are over
	total   float64 // 0: not known
	fromOne bool    // no epoch 0 was seen
	behind  int     // lines in a row that were about an earlier epoch
	// seen is an epoch that one line has told, and no other has confirmed; 0: none. A
	// program that prints its settings may print any number.
	seen float64
	told bool // total stood beside the epoch itself
}

// again is how many lines in a row about an earlier epoch, or of a lower
// count, mean that the run has begun anew; fewer are another process's.
const again = 3

type move int

const (
	stays move = iota
	moves
	earlier // another process's line
	anew    // the program has started again
	none    // the number is no epoch, or not yet
)

// confirms reports whether an epoch that no line leads up to was told before.
func (e *epochs) confirms(index float64) bool {
	before := e.seen
	e.seen = index
	return before > 0 && index >= before
}

// take follows a mark that has an epoch.
func (e *epochs) take(m mark) move {
	if m.epochs > 0 {
		e.total, e.told = m.epochs, true
	}
	index := m.epoch
	if !m.completed && e.told && m.epochs < 0 && e.total > 0 && index > e.total {
		return none // above the told number
	}
	switch {
	case m.completed:
	case m.epoch == 0:
		if e.known && e.fromOne { // what was taken for the first was the second
			e.fromOne = false
		}
	case !m.zero && (e.fromOne || !e.known):
		e.fromOne = true
		index--
	}
	if m.last && !e.fromOne && m.epochs > 0 {
		e.total = m.epochs + 1
	}
	index = float64(int64(index))
	from, far := e.index, 1.0
	if !e.known {
		from, far = 0, 0
	}
	if index > from+far && m.step < 0 && m.epochs < 0 && !e.confirms(index) {
		return none
	}
	e.seen = 0
	switch {
	case !e.known:
		e.known, e.index, e.behind = true, index, 0
		return moves
	case index < e.index:
		if e.behind++; e.behind < again {
			return earlier
		}
		e.index, e.behind = index, 0
		return anew
	case index == e.index:
		e.behind = 0
		return stays
	}
	e.index, e.behind = index, 0
	return moves
}
