package queue

import (
	"cmp"
	"fmt"
	"slices"

	"carma/mapper/fairshare"
	"carma/mapper/model"
)

// Line is one list of waiting tasks by rank, then in order of submission. The cost of
// adding at the end and removing near the front does not depend on its length.
type Line struct {
	user  *fairshare.User // the user of these tasks, in the order fair; else nil
	items []*model.Task
	head  int // items[:head] were removed
}

// Len returns the number of waiting tasks.
func (l *Line) Len() int { return len(l.items) - l.head }

// At returns the i-th waiting task, from 0.
func (l *Line) At(i int) *model.Task { return l.items[l.head+i] }

// Waiting returns the waiting tasks. The list is shared: it changes with the line.
func (l *Line) Waiting() []*model.Task { return l.items[l.head:] }

func (l *Line) find(t *model.Task) (int, bool) {
	return slices.BinarySearchFunc(l.Waiting(), t, byPosition)
}

// Add adds a task at its position.
func (l *Line) Add(t *model.Task) {
	if l.head > 64 && l.head > len(l.items)/2 {
		n := copy(l.items, l.items[l.head:])
		clear(l.items[n:])
		l.items, l.head = l.items[:n], 0
	}
	i, _ := l.find(t)
	l.items = slices.Insert(l.items, l.head+i, t)
}

// Sort sorts the tasks after their positions changed.
func (l *Line) Sort() { slices.SortFunc(l.Waiting(), byPosition) }

// Remove removes the i-th waiting task, moving the shorter side.
func (l *Line) Remove(i int) {
	at := l.head + i
	if i < l.Len()/2 {
		copy(l.items[l.head+1:at+1], l.items[l.head:at])
		l.items[l.head] = nil
		l.head++
		return
	}
	copy(l.items[at:], l.items[at+1:])
	l.items[len(l.items)-1] = nil
	l.items = l.items[:len(l.items)-1]
}

// Lane is a priority class of a queue. It has one line, or in the order fair one per
// user, in the order of the users. So a scheduling cycle sorts some hundred users and not
// a hundred thousand tasks.
type Lane struct {
	lines  []*Line
	byUser map[model.UserAccount]*Line // look-up only; nil if there is one line
}

// Len returns the number of waiting tasks.
func (l *Lane) Len() int {
	n := 0
	for _, line := range l.lines {
		n += line.Len()
	}
	return n
}

// Lines returns the lines of a lane, in the order in which they are tried.
func (l *Lane) Lines() []*Line { return l.lines }

// Users returns the number of users with tasks in a lane of several lines, else at most
// 1.
func (l *Lane) Users() (n int) {
	for _, line := range l.lines {
		if line.Len() > 0 {
			n++
		}
	}
	return n
}

// Waiting returns the waiting tasks, in the order in which they are tried.
func (l *Lane) Waiting() []*model.Task {
	if len(l.lines) == 1 {
		return l.lines[0].Waiting()
	}
	var all []*model.Task
	for _, line := range l.lines {
		all = append(all, line.Waiting()...)
	}
	return all
}

// LineOf returns the line of a task, or nil.
func (l *Lane) LineOf(t *model.Task) *Line {
	if l.byUser != nil {
		return l.byUser[t.UserAccount()]
	}
	if len(l.lines) == 0 {
		return nil
	}
	return l.lines[0]
}

// open returns the line of a task, and adds it if there is none. u is its user, or nil if
// all users share one line.
func (l *Lane) open(t *model.Task, u *fairshare.User) *Line {
	own := l.LineOf(t)
	if own != nil && (u == nil || own.Len() > 0) {
		return own
	}
	if own == nil {
		own = &Line{user: u}
	} else { // it was empty, and the rank of its user may have changed
		l.lines = slices.DeleteFunc(l.lines, func(x *Line) bool { return x == own })
	}
	i := 0
	if u != nil {
		if l.byUser == nil {
			l.byUser = map[model.UserAccount]*Line{}
		}
		l.byUser[u.UserAccount()] = own
		i, _ = slices.BinarySearchFunc(l.lines, u, func(x *Line, u *fairshare.User) int { return fairshare.CompareUsers(x.user, u) })
	}
	l.lines = slices.Insert(l.lines, i, own)
	return own
}

// sort sorts the lines by user and drops empty ones.
func (l *Lane) sort() {
	if l.byUser == nil {
		return
	}
	l.lines = slices.DeleteFunc(l.lines, func(x *Line) bool {
		if x.Len() == 0 {
			delete(l.byUser, x.user.UserAccount())
		}
		return x.Len() == 0
	})
	slices.SortFunc(l.lines, func(a, b *Line) int { return fairshare.CompareUsers(a.user, b.user) })
}

// queues holds all waiting tasks. The recovery queue goes before the main queue, and
// higher priorities go first. Within a priority the rank decides: the order of
// submission, unless the order option says otherwise.
type queues struct {
	lanes [6]Lane
	// turns is set in the order fair: the users take turns within a priority of the main
	// queue. Recovering tasks have had their turn and go in order of submission.
	turns *fairshare.Users
	// byPriority: a priority of both queues goes before all lower ones.
	byPriority bool
}

func (q *queues) recovery() []Lane { return q.lanes[:3] }

func (q *queues) main() []Lane { return q.lanes[3:] }

// LanesLen returns the number of waiting tasks in lanes.
func LanesLen(lanes []Lane) int {
	n := 0
	for i := range lanes {
		n += lanes[i].Len()
	}
	return n
}

// LaneOf returns the number of the lane of a task: 0 to 2 for the recovery queue, 3 to 5
// for the main queue, the highest priority first.
func LaneOf(t *model.Task) int {
	i := 1 - int(max(model.Low, min(model.High, t.Priority)))
	if t.GoesFirst() {
		return i
	}
	return 3 + i
}

// turnOf returns the place of a lane in the order of all lanes.
func (q *queues) turnOf(lane int) int {
	if q.byPriority {
		return lane%3*2 + lane/3
	}
	return lane
}

// ahead returns the number of tasks in the lanes before a lane.
func (q *queues) ahead(lane int) (n int) {
	for l := range q.lanes {
		if q.turnOf(l) < q.turnOf(lane) {
			n += q.lanes[l].Len()
		}
	}
	return n
}

// before reports whether a comes before b.
func (q *queues) before(a, b *model.Task) bool {
	switch x, y := LaneOf(a), LaneOf(b); {
	case x != y:
		return q.turnOf(x) < q.turnOf(y)
	case q.turns == nil || x < 3 || a.UserAccount() == b.UserAccount():
		return byPosition(a, b) < 0
	}
	return fairshare.CompareUsers(q.turns.Of(a.UserAccount()), q.turns.Of(b.UserAccount())) < 0
}

func (q *queues) add(t *model.Task) {
	var u *fairshare.User
	if q.turns != nil && LaneOf(t) >= 3 {
		if u = q.turns.Make(t.UserAccount()); u.First == 0 {
			u.NoteFirst(t.ID)
		}
	}
	q.lanes[LaneOf(t)].open(t, u).Add(t)
}

func (q *queues) remove(t *model.Task) bool {
	line := q.lanes[LaneOf(t)].LineOf(t)
	if line == nil {
		return false
	}
	i, ok := line.find(t)
	if ok {
		line.Remove(i)
	}
	return ok
}

// firsts sets the first waiting task of each user with waiting tasks.
func (q *queues) firsts() {
	for l := range q.main() {
		for _, line := range q.main()[l].lines {
			if line.Len() > 0 {
				line.user.NoteFirst(line.At(0).ID)
			}
		}
	}
}

func (q *queues) sort() {
	for l := range q.main() {
		q.main()[l].sort()
	}
}

// refile adds all tasks again, by user or not.
func (q *queues) refile(by *fairshare.Users) {
	old := q.lanes
	*q = queues{turns: by, byPriority: q.byPriority}
	for l := range old {
		for _, t := range old[l].Waiting() {
			q.add(t)
		}
	}
}

// clone copies the queues; of returns the copy of a task.
func (q *queues) clone(by *fairshare.Users, of func(model.TaskID) *model.Task) queues {
	c := queues{byPriority: q.byPriority}
	if q.turns != nil {
		c.turns = by
	}
	for l := range q.lanes {
		if q.lanes[l].byUser != nil {
			c.lanes[l].byUser = map[model.UserAccount]*Line{}
		}
		for _, from := range q.lanes[l].lines {
			to := &Line{}
			if from.user != nil {
				to.user = by.Of(from.user.UserAccount())
				c.lanes[l].byUser[to.user.UserAccount()] = to
			}
			for _, t := range from.Waiting() {
				to.items = append(to.items, of(t.ID))
			}
			c.lanes[l].lines = append(c.lanes[l].lines, to)
		}
	}
	return c
}

func (q *queues) len() int { return LanesLen(q.lanes[:]) }

// place returns a waiting task's place in its queue, recovery or main, from 1.
func (q *queues) place(t *model.Task) int {
	n := q.position(t) - q.ahead(LaneOf(t))
	from := LaneOf(t) / 3 * 3
	return n + LanesLen(q.lanes[from:LaneOf(t)])
}

// position returns a waiting task's place in the order of all lanes, from 1.
func (q *queues) position(t *model.Task) int {
	n := q.ahead(LaneOf(t))
	lane := &q.lanes[LaneOf(t)]
	mine := lane.LineOf(t)
	for _, line := range lane.lines {
		if line == mine {
			at, _ := line.find(t)
			return n + at + 1
		}
		n += line.Len()
	}
	return n + 1
}

// audit checks that the lines of each lane are in the order of their users.
func (q *queues) audit() error {
	for l := range q.lanes {
		lines := q.lanes[l].lines
		for i, line := range lines {
			if byUser := q.turns != nil && l >= 3; byUser != (line.user != nil) || !byUser && len(lines) > 1 {
				return fmt.Errorf("lane %d has %d lines that should not be there", l, len(lines))
			}
			if i > 0 && line.Len() > 0 && lines[i-1].Len() > 0 && fairshare.CompareUsers(lines[i-1].user, line.user) >= 0 {
				return fmt.Errorf("user %q does not come after user %q", line.user.Name, lines[i-1].user.Name)
			}
			for _, t := range line.Waiting() {
				if line.user != nil && t.UserAccount() != line.user.UserAccount() {
					return fmt.Errorf("task %d waits among those of user %q", t.ID, line.user.Name)
				}
			}
		}
	}
	return nil
}

// byPosition is the order within a line: by rank, then in order of submission. A task
// that was put at the back comes after all tasks that had been submitted or put at the
// back before.
func byPosition(x, y *model.Task) int {
	a, b := x.Position(), y.Position()
	if c := cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(max(a.ID, a.Behind), max(b.ID, b.Behind))); c != 0 {
		return c
	}
	if a.Behind > 0 && b.Behind > 0 && a.QueuedAt != b.QueuedAt {
		return cmp.Compare(a.QueuedAt, b.QueuedAt)
	}
	return cmp.Or(model.CompareBools(a.Behind > 0, b.Behind > 0), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Turn, b.Turn), cmp.Compare(x.ID, y.ID))
}
