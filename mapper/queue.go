package mapper

import (
	"fmt"
	"slices"

	"carma/mapper/fairshare"
	"carma/mapper/model"
)

// line is one list of waiting tasks by rank, then in order of submission. The cost of
// adding at the end and removing near the front does not depend on its length.
type line struct {
	user  *fairshare.User // the user of these tasks, in the order fair; else nil
	items []*model.Task
	head  int // items[:head] were removed
}

func (l *line) len() int               { return len(l.items) - l.head }
func (l *line) at(i int) *model.Task   { return l.items[l.head+i] }
func (l *line) waiting() []*model.Task { return l.items[l.head:] }

func (l *line) find(t *model.Task) (int, bool) {
	return slices.BinarySearchFunc(l.waiting(), t, byPosition)
}

func (l *line) add(t *model.Task) {
	if l.head > 64 && l.head > len(l.items)/2 {
		n := copy(l.items, l.items[l.head:])
		clear(l.items[n:])
		l.items, l.head = l.items[:n], 0
	}
	i, _ := l.find(t)
	l.items = slices.Insert(l.items, l.head+i, t)
}

// sort sorts the tasks after their positions changed.
func (l *line) sort() { slices.SortFunc(l.waiting(), byPosition) }

// remove removes the i-th waiting task, moving the shorter side.
func (l *line) remove(i int) {
	at := l.head + i
	if i < l.len()/2 {
		copy(l.items[l.head+1:at+1], l.items[l.head:at])
		l.items[l.head] = nil
		l.head++
		return
	}
	copy(l.items[at:], l.items[at+1:])
	l.items[len(l.items)-1] = nil
	l.items = l.items[:len(l.items)-1]
}

// lane is a priority class of a queue. It has one line, or in the order fair one per
// user, in the order of the users. So a scheduling cycle sorts some hundred users and not
// a hundred thousand tasks.
type lane struct {
	lines  []*line
	byUser map[model.UserAccount]*line // look-up only; nil if there is one line
}

func (l *lane) len() int {
	n := 0
	for _, line := range l.lines {
		n += line.len()
	}
	return n
}

// users returns the number of users with tasks in a lane of several lines, else at most
// 1.
func (l *lane) users() (n int) {
	for _, line := range l.lines {
		if line.len() > 0 {
			n++
		}
	}
	return n
}

func (l *lane) waiting() []*model.Task {
	if len(l.lines) == 1 {
		return l.lines[0].waiting()
	}
	var all []*model.Task
	for _, line := range l.lines {
		all = append(all, line.waiting()...)
	}
	return all
}

// lineOf returns the line of a task, or nil.
func (l *lane) lineOf(t *model.Task) *line {
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
func (l *lane) open(t *model.Task, u *fairshare.User) *line {
	own := l.lineOf(t)
	if own != nil && (u == nil || own.len() > 0) {
		return own
	}
	if own == nil {
		own = &line{user: u}
	} else { // it was empty, and the rank of its user may have changed
		l.lines = slices.DeleteFunc(l.lines, func(x *line) bool { return x == own })
	}
	i := 0
	if u != nil {
		if l.byUser == nil {
			l.byUser = map[model.UserAccount]*line{}
		}
		l.byUser[u.UserAccount()] = own
		i, _ = slices.BinarySearchFunc(l.lines, u, func(x *line, u *fairshare.User) int { return fairshare.CompareUsers(x.user, u) })
	}
	l.lines = slices.Insert(l.lines, i, own)
	return own
}

// sort sorts the lines by user and drops empty ones.
func (l *lane) sort() {
	if l.byUser == nil {
		return
	}
	l.lines = slices.DeleteFunc(l.lines, func(x *line) bool {
		if x.len() == 0 {
			delete(l.byUser, x.user.UserAccount())
		}
		return x.len() == 0
	})
	slices.SortFunc(l.lines, func(a, b *line) int { return fairshare.CompareUsers(a.user, b.user) })
}

// queues holds all waiting tasks. The recovery queue goes before the main queue, and
// higher priorities go first. Within a priority the rank decides: the order of
// submission, unless the order option says otherwise.
type queues struct {
	lanes [6]lane
	// turns is set in the order fair: the users take turns within a priority of the main
	// queue. Recovering tasks have had their turn and go in order of submission.
	turns *fairshare.Users
	// byPriority: a priority of both queues goes before all lower ones.
	byPriority bool
}

func (q *queues) recovery() []lane { return q.lanes[:3] }
func (q *queues) main() []lane     { return q.lanes[3:] }

func lanesLen(lanes []lane) int {
	n := 0
	for i := range lanes {
		n += lanes[i].len()
	}
	return n
}

func laneOf(t *model.Task) int {
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
			n += q.lanes[l].len()
		}
	}
	return n
}

// before reports whether a comes before b.
func (q *queues) before(a, b *model.Task) bool {
	switch x, y := laneOf(a), laneOf(b); {
	case x != y:
		return q.turnOf(x) < q.turnOf(y)
	case q.turns == nil || x < 3 || a.UserAccount() == b.UserAccount():
		return byPosition(a, b) < 0
	}
	return fairshare.CompareUsers(q.turns.Of(a.UserAccount()), q.turns.Of(b.UserAccount())) < 0
}

func (q *queues) add(t *model.Task) {
	var u *fairshare.User
	if q.turns != nil && laneOf(t) >= 3 {
		if u = q.turns.Make(t.UserAccount()); u.First == 0 {
			u.NoteFirst(t.ID)
		}
	}
	q.lanes[laneOf(t)].open(t, u).add(t)
}

func (q *queues) remove(t *model.Task) bool {
	line := q.lanes[laneOf(t)].lineOf(t)
	if line == nil {
		return false
	}
	i, ok := line.find(t)
	if ok {
		line.remove(i)
	}
	return ok
}

// firsts sets the first waiting task of each user with waiting tasks.
func (q *queues) firsts() {
	for l := range q.main() {
		for _, line := range q.main()[l].lines {
			if line.len() > 0 {
				line.user.NoteFirst(line.at(0).ID)
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
		for _, t := range old[l].waiting() {
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
			c.lanes[l].byUser = map[model.UserAccount]*line{}
		}
		for _, from := range q.lanes[l].lines {
			to := &line{}
			if from.user != nil {
				to.user = by.Of(from.user.UserAccount())
				c.lanes[l].byUser[to.user.UserAccount()] = to
			}
			for _, t := range from.waiting() {
				to.items = append(to.items, of(t.ID))
			}
			c.lanes[l].lines = append(c.lanes[l].lines, to)
		}
	}
	return c
}

func (q *queues) len() int { return lanesLen(q.lanes[:]) }

// place returns a waiting task's place in its queue, recovery or main, from 1.
func (q *queues) place(t *model.Task) int {
	n := q.position(t) - q.ahead(laneOf(t))
	from := laneOf(t) / 3 * 3
	return n + lanesLen(q.lanes[from:laneOf(t)])
}

// position returns a waiting task's place in the order of all lanes, from 1.
func (q *queues) position(t *model.Task) int {
	n := q.ahead(laneOf(t))
	lane := &q.lanes[laneOf(t)]
	mine := lane.lineOf(t)
	for _, line := range lane.lines {
		if line == mine {
			at, _ := line.find(t)
			return n + at + 1
		}
		n += line.len()
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
			if i > 0 && line.len() > 0 && lines[i-1].len() > 0 && fairshare.CompareUsers(lines[i-1].user, line.user) >= 0 {
				return fmt.Errorf("user %q does not come after user %q", line.user.Name, lines[i-1].user.Name)
			}
			for _, t := range line.waiting() {
				if line.user != nil && t.UserAccount() != line.user.UserAccount() {
					return fmt.Errorf("task %d waits among those of user %q", t.ID, line.user.Name)
				}
			}
		}
	}
	return nil
}
