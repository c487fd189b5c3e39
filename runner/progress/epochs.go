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
)

// take follows a mark that has an epoch.
func (e *epochs) take(m mark) move {
	if m.epochs > 0 {
		e.total = m.epochs
	}
	index := m.epoch
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
