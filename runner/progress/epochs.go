package progress

// epochs is the position of a run among its epochs, from the lines read. Some lines begin
// an epoch and others end one; the index is right for both, as it only increases.
type epochs struct {
	known   bool
	index   float64 // number of epochs that are over
	total   float64 // 0 if unknown
	fromOne bool    // no epoch 0 was seen
	behind  int     // consecutive lines about an earlier epoch
	// seen is an epoch that only one line has named so far, or 0. A program that prints its
	// settings may print any number.
	seen float64
	told bool // total was printed beside the epoch
	// open is set if the epochs count from 0, and total may be the number of epochs or
	// the index of the last one. "Epoch 0/5" may be one of five or of six.
	open bool
	// back is set if the latest line was far behind. The program may then have started
	// again, which only later lines confirm.
	back bool
}

// again is the number of consecutive lines with an earlier epoch, or a lower count, that
// mean a restart of the run. Fewer such lines are lines of another process.
const again = 3

type move int

const (
	stays move = iota
	moves
	earlier // another process's line
	anew    // the program has started again
	none    // the number is no epoch, or not yet
)

// confirms reports whether a previous line has also named an epoch out of sequence, which
// is not above index.
func (e *epochs) confirms(index float64) bool {
	before := e.seen
	e.seen = index
	return before > 0 && index >= before
}

// settle decides whether the number beside an epoch is the number of epochs or the last
// epoch's index. It uses the number of epochs in a setting, and an epoch with that
// number.
func (e *epochs) settle(setting float64) {
	switch {
	case !e.open:
	case setting == e.total:
		e.open = false
	case setting == e.total+1, e.index == e.total:
		e.total, e.open = e.total+1, false
	}
}

// openLeast is the number of epochs from which one more or less makes no difference.
const openLeast = 40

// take processes a mark that has an epoch.
func (e *epochs) take(m mark) move {
	if m.epochs > 0 {
		e.total, e.told = m.epochs, true
	}
	index := m.epoch
	if !m.completed && e.told && m.epochs < 0 && e.total > 0 && (index > e.total || index == 0 && e.fromOne) {
		return none // a number above the number of epochs, or below the first, belongs to another count
	}
	// A bar that names its epoch without their number is Lightning's, which counts from 0,
	// or another program's that counts from 1.
	zero := m.zero && !(m.form == Lightning && (e.fromOne || !e.known && m.epoch == 1))
	switch {
	case m.completed:
	case m.epoch == 0:
		if e.known && e.fromOne { // the supposed first epoch was the second
			e.fromOne = false
		}
	case !zero && (e.fromOne || !e.known):
		e.fromOne = true
		index--
	}
	if m.last && !e.fromOne && m.epochs > 0 {
		e.total = m.epochs + 1
	}
	if m.epochs > 0 {
		e.open = !e.fromOne && !m.last && !m.completed && m.form != Brackets
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
		e.back = e.back || m.epochs > 0 && (index < e.index-1 || index == 0 && m.step < 0)
		if e.behind++; e.behind < again {
			return earlier
		}
		e.index, e.behind, e.back = index, 0, false
		return anew
	case index == e.index:
		e.behind, e.back = 0, false
		return stays
	}
	e.index, e.behind, e.back = index, 0, false
	return moves
}
