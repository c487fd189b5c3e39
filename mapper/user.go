package mapper

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"carma/mapper/units"
)

// user is the account of one user: past use, for the order fair, and what their
// tasks have now, for the quotas.
type user struct {
	Name string `json:"name"`
	// Use is decayed GPU-seconds, up to users.At.
	Use float64 `json:"use,omitempty"`
	// Standing is the user's place in the order fair as the last pass worked it
	// out; lower goes first. It stays between passes, so that the order of the
	// queue changes only where the queue is looked at.
	Standing float64 `json:"standing,omitempty"`
	// First is the lowest number among the user's waiting tasks at that time;
	// users who have used the same go in that order.
	First TaskID `json:"first,omitempty"`

	// What their tasks come to; worked out again when a snapshot is read.
	tasks   int         // placed
	gpus    int         // held, counted per task and GPU
	memory  units.Bytes // sum of the grants
	rate    int64       // sum of the shares, in millionths of a GPU
	waiting int
}

// users are all users with use that has not decayed, or with tasks.
type users struct {
	at     units.Instant // when Use was right
	tick   units.Instant // when the order is looked at again at the latest
	all    []*user       // by name
	byName map[string]*user
}

func newUsers() *users { return &users{byName: map[string]*user{}} }

// of returns a user, nil if nothing is kept about them.
func (us *users) of(name string) *user { return us.byName[name] }

// make returns a user, new if nothing is kept about them yet.
func (us *users) make(name string) *user {
	if u := us.byName[name]; u != nil {
		return u
	}
	u := &user{Name: name}
	i, _ := slices.BinarySearchFunc(us.all, name, func(u *user, name string) int { return cmp.Compare(u.Name, name) })
	us.all = slices.Insert(us.all, i, u)
	us.byName[name] = u
	return u
}

func (us *users) clone() *users {
	c := &users{at: us.at, tick: us.tick, all: make([]*user, len(us.all)), byName: make(map[string]*user, len(us.all))}
	for i, u := range us.all {
		c.all[i] = new(*u)
		c.byName[u.Name] = c.all[i]
	}
	return c
}

// settle charges the use since the last time, and lets older use decay. All use
// decays alike, so users without tasks keep their order.
func (us *users) settle(now units.Instant, halfLife time.Duration) {
	dt := now.Sub(us.at).Seconds()
	us.at = now
	if dt <= 0 {
		return
	}
	left := math.Exp2(-dt / halfLife.Seconds())
	// The integral of what decays while it is added to.
	gained := (1 - left) * halfLife.Seconds() / math.Ln2
	for _, u := range us.all {
		u.Use = u.Use*left + float64(u.rate)/shareOne*gained
	}
}

// forget drops the users without tasks whose use has decayed.
func (us *users) forget() {
	us.all = slices.DeleteFunc(us.all, func(u *user) bool {
		gone := u.tasks == 0 && u.waiting == 0 && u.Use < leastUse
		if gone {
			delete(us.byName, u.Name)
		}
		return gone
	})
}

// leastUse is the use, in GPU-seconds, below which a user is forgotten.
const leastUse = 1

// shareOne is a whole GPU, in the unit of shares; leastShare is charged for
// any task, however little memory it has booked: it loads the SMs all the same.
const (
	shareOne   = 1_000_000
	leastShare = shareOne / 16
)

// shareOn is the part of a GPU that a task is charged for: the part of the memory
// booked for it, or all if it is alone. It is not 1/n for n residents. Then the
// charge would change as others come and go, and the first on an idle GPU would
// pay for room that others may use. Where nothing is booked, its estimated need
// counts.
func shareOn(g *GPU, r *Resident, need units.Bytes) int64 {
	if r.Alone || g.Capacity <= 0 {
		return shareOne
	}
	part := float64(max(r.Grant, need)) / float64(g.Capacity)
	return max(leastShare, int64(math.Round(shareOne*min(1, part))))
}

// occupy adds a placed task to its user's account; vacate takes it off. A change
// of its grants comes between the two.
func (s *State) occupy(t *Task) {
	s.users.settle(s.now, s.opt.halfLife())
	u := s.users.make(t.User)
	u.tasks++
	for _, grant := range t.Current().Grants {
		g := s.byID[grant.GPU]
		r := g.resident(t.ID)
		need := units.Bytes(0)
		if s.opt.Booking == BookSamples {
			need = t.Need
		}
		r.Share = shareOn(g, r, need)
		u.count(r, 1)
	}
}

func (s *State) vacate(t *Task) {
	s.users.settle(s.now, s.opt.halfLife())
	u := s.users.make(t.User)
	u.tasks--
	for _, grant := range t.Current().Grants {
		u.count(s.byID[grant.GPU].resident(t.ID), -1)
	}
}

func (u *user) count(r *Resident, sign int) {
	u.gpus += sign
	u.memory += units.Bytes(sign) * r.Grant
	u.rate += int64(sign) * r.Share
}

// count computes the users' accounts from the ledger.
func (s *State) count(us *users) {
	for _, g := range s.gpus {
		for i := range g.Residents {
			r := &g.Residents[i]
			if t := s.tasks[r.Task]; t != nil {
				u := us.make(t.User)
				u.count(r, 1)
				if a := t.Current(); a != nil && a.Grants[0].GPU == g.ID {
					u.tasks++
				}
			}
		}
	}
	for i := range s.queue.lanes {
		for _, t := range s.queue.lanes[i].waiting() {
			us.make(t.User).waiting++
		}
	}
}

// fillShares sets the shares that a snapshot from before there were any lacks.
func (s *State) fillShares() {
	for _, g := range s.gpus {
		for i := range g.Residents {
			if r := &g.Residents[i]; r.Share <= 0 || r.Share > shareOne {
				r.Share = shareOn(g, r, 0)
			}
		}
	}
}

// auditUsers compares the users' accounts with the ledger.
func (s *State) auditUsers() error {
	fresh := newUsers()
	s.count(fresh)
	for _, u := range fresh.all {
		if s.users.of(u.Name) == nil {
			return fmt.Errorf("nothing is kept about user %q, who has tasks", u.Name)
		}
	}
	for i, u := range s.users.all {
		want := user{Name: u.Name, Use: u.Use, Standing: u.Standing, First: u.First}
		if f := fresh.of(u.Name); f != nil {
			want.tasks, want.gpus, want.memory, want.rate, want.waiting = f.tasks, f.gpus, f.memory, f.rate, f.waiting
		}
		if *u != want || s.users.of(u.Name) != u || i > 0 && s.users.all[i-1].Name >= u.Name {
			return fmt.Errorf("user %q is kept as %+v, the ledger has %+v", u.Name, *u, want)
		}
		if !(u.Use >= 0) {
			return fmt.Errorf("user %q has used %v GPU-seconds", u.Name, u.Use)
		}
	}
	return s.queue.audit()
}
