package mapper

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Weight is how much of the server a user has a right to, in proportion to
// others; who is not named has 1.
type Weight struct {
	User   string  `json:"user"`
	Weight float64 `json:"weight"`
}

// defaultHalfLife is after how long a GPU-second counts half.
const defaultHalfLife = 24 * time.Hour

// fairAdvance is how much longer a task that is placed counts as holding its
// share. Use grows only with time; without this all GPUs that become free at
// once would go to the one user who has used least.
const fairAdvance = 10 * time.Minute

// fairTick is how often the order is worked out anew though nothing has
// happened: it changes with time, and may bring a task that fits within reach.
const fairTick = time.Minute

func (o *Options) halfLife() time.Duration { return cmp.Or(o.FairHalfLife, defaultHalfLife) }

func (o *Options) fair() bool { return o.Order == OrderFair }

// takesTurns returns the users that the queue is ordered by, or nil.
func (s *State) takesTurns() *users {
	if s.opt.fair() {
		return s.users
	}
	return nil
}

// weight is a user's weight.
func (o *Options) weight(name string) float64 {
	i, ok := slices.BinarySearchFunc(o.FairWeights, name, func(w Weight, name string) int { return cmp.Compare(w.User, name) })
	if !ok {
		return 1
	}
	return o.FairWeights[i].Weight
}

// validWeights wants them sorted by user, each user once.
func validWeights(all []Weight) error {
	for i, w := range all {
		switch {
		case w.User == "":
			return fmt.Errorf("fair-weights names no user; write for example ada=2")
		case !(w.Weight >= 0.001 && w.Weight <= 1000):
			return fmt.Errorf("fair-weights gives %s %v, which is not between 0.001 and 1000", w.User, w.Weight)
		case i > 0 && all[i-1].User == w.User:
			return fmt.Errorf("fair-weights names %s twice", w.User)
		case i > 0 && all[i-1].User > w.User:
			return fmt.Errorf("fair-weights is not sorted by user")
		}
	}
	return nil
}

// stand computes a user's place from past use and what their tasks have now.
func (s *State) stand(u *user) {
	u.Standing = (u.Use + float64(u.rate)/shareOne*fairAdvance.Seconds()) / s.opt.weight(u.Name)
}

// compareUsers is the order of users. Nothing is known about nil.
func compareUsers(a, b *user) int {
	if a == nil || b == nil {
		var none user
		a, b = cmp.Or(a, &none), cmp.Or(b, &none)
	}
	return cmp.Or(cmp.Compare(a.Standing, b.Standing), cmp.Compare(a.First, b.First), cmp.Compare(a.Name, b.Name))
}

// arrange brings the use of all users up to now and the queue in the order
// that follows. It sorts the users who wait for something, not their tasks.
func (s *State) arrange() {
	s.users.settle(s.now, s.opt.halfLife())
	if s.opt.fair() {
		for _, u := range s.users.all {
			s.stand(u)
			u.First = 0
		}
		s.queue.firsts()
	}
	s.users.forget()
	s.queue.sort()
}

// restand moves a user's line after a launch, and reports whether the order of
// a lane's lines is another now.
func (s *State) restand(t *Task, l *lane) bool {
	if !s.opt.fair() {
		return false
	}
	s.stand(s.users.of(t.User))
	before := slices.Clone(l.lines)
	s.queue.sort()
	return !slices.Equal(before, l.lines)
}

// keepFair asks to be woken while the order may bring a task within reach.
func (s *State) keepFair() {
	if !s.opt.fair() || s.reach[1] == 0 || s.users.tick > s.now ||
		!slices.ContainsFunc(s.users.all, func(u *user) bool { return u.rate > 0 }) {
		return
	}
	s.users.tick = s.now.Add(fairTick)
	s.at(s.users.tick, deadline{})
}

// overtakers are the tasks of others that fair share puts before a task though
// they were submitted after it.
func (s *State) overtakers(t *Task) (n int, of *user) {
	if !s.opt.fair() || t.Phase != Queued {
		return 0, nil
	}
	for _, line := range s.queue.lanes[laneOf(t)].lines {
		if line.user.Name == t.User {
			break
		}
		i, _ := slices.BinarySearchFunc(line.waiting(), t, byTurn)
		if later := line.len() - i; later > 0 {
			n += later
			of = cmp.Or(of, line.user)
		}
	}
	return n, of
}

// Turn says who goes before a task by fair share though they came later: Later
// tasks, the first of them User's. Use is what that user has used, OwnUse what
// the task's own user Own has, in decayed GPU-seconds.
type Turn struct {
	Later  int
	User   string
	Use    float64
	Own    string
	OwnUse float64
}

// fairly says who goes before a task by fair share; nil: nobody.
func (s *State) fairly(t *Task) *Turn {
	n, other := s.overtakers(t)
	if n == 0 {
		return nil
	}
	own := s.users.of(t.User)
	return &Turn{Later: n, User: other.Name, Use: other.Use, Own: own.Name, OwnUse: own.Use}
}
