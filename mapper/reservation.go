package mapper

import (
	"cmp"
	"slices"
	"time"

	"carma/internal/units"
)

// Reserved keeps GPUs, or memory on them, for a user or an account from an instant
// to another. The state numbers reservations from 1; the number in the event is
// ignored. One that makes no sense changes nothing.
type Reserved struct {
	At          units.Instant `json:"at"`
	Reservation Reservation   `json:"reservation"`
}

// Unreserved ends a reservation.
type Unreserved struct {
	At units.Instant `json:"at"`
	ID int           `json:"id"`
	By string        `json:"by,omitempty"`
}

func (e Reserved) when() units.Instant   { return e.At }
func (e Unreserved) when() units.Instant { return e.At }
func (Reserved) kind() string            { return "reserved" }
func (Unreserved) kind() string          { return "unreserved" }
func (Reserved) about() TaskID           { return 0 }
func (Unreserved) about() TaskID         { return 0 }

// Reservation is what is kept for whom. Tasks that run at its begin go on; nobody
// else's task is started where it would run into the reservation.
type Reservation struct {
	ID   int     `json:"id"`
	GPUs []GPUID `json:"gpus"`
	// Memory is what is kept on each of the GPUs; 0: the whole GPU.
	Memory units.Bytes `json:"memory,omitempty"`
	// User or Account: for whom. One of them is empty.
	User    string        `json:"user,omitempty"`
	Account string        `json:"account,omitempty"`
	From    units.Instant `json:"from"`
	Until   units.Instant `json:"until"`
	By      string        `json:"by,omitempty"`
	Why     string        `json:"why,omitempty"`
}

// RuleReserved: a GPU is kept for somebody else, and the task would run into that.
const RuleReserved Rule = "reserved"

const (
	// reservedKnown: a run whose time is known from earlier runs may take so much
	// longer before a reservation. Of other run times latenessTypical says it.
	reservedKnown = 1.5
	// reservedAhead: a task whose run time is not known is not started so long
	// before a reservation.
	reservedAhead = 4 * time.Hour
)

func (s *State) reserved(ev Reserved) {
	r := ev.Reservation
	r.GPUs = slices.Clone(r.GPUs)
	slices.Sort(r.GPUs)
	r.GPUs = slices.Compact(r.GPUs)
	r.From = max(r.From, s.now)
	if r.Until <= r.From || len(r.GPUs) == 0 || r.Memory < 0 || (r.User == "") == (r.Account == "") {
		return
	}
	s.lastReservation++
	r.ID = s.lastReservation
	s.reservations = append(s.reservations, &r)
	s.at(r.Until, timer{})
	s.dirty = true
}

func (s *State) unreserved(ev Unreserved) {
	s.dropReservations(func(r *Reservation) bool { return r.ID == ev.ID })
}

// dropReservations ends some. What was turned down for them is tried again.
func (s *State) dropReservations(which func(*Reservation) bool) {
	n := len(s.reservations)
	s.reservations = slices.DeleteFunc(s.reservations, which)
	if len(s.reservations) < n {
		s.dropCache()
		s.dirty = true
	}
}

// isFor reports whether a reservation is for a task.
func (r *Reservation) isFor(t *Task) bool {
	return r.User != "" && r.User == t.User || r.Account != "" && r.Account == t.Account
}

// latestEnd is when a task that is started now is thought to have ended at the
// latest; false: nothing is known of its end.
func (s *State) latestEnd(t *Task) (units.Instant, bool) {
	run, basis := s.runTime(t)
	switch basis {
	case known:
		run = time.Duration(float64(run) * reservedKnown)
	case typical:
		run = time.Duration(float64(run) * latenessTypical)
	default:
		run = 0
	}
	if t.TimeLimit > 0 && (run == 0 || t.TimeLimit < run) {
		run = t.TimeLimit
	}
	return s.now.Add(run), run > 0
}

// runsInto reports whether a task that is started now would run into a reservation.
func (s *State) runsInto(t *Task, r *Reservation) bool {
	if r.Until <= s.now {
		return false
	}
	end, known := s.latestEnd(t)
	if !known {
		end = s.now.Add(reservedAhead)
	}
	return r.From <= s.now || end > r.From
}

// reservation returns what keeps a task off a GPU that has room for it otherwise;
// nil: nothing.
func (s *State) reservation(t *Task, g *GPU) *Reservation {
	left := s.freeFor(t, g) - s.needOn(t, g)
	for _, r := range s.reservations {
		if r.isFor(t) || !slices.Contains(r.GPUs, g.ID) || !s.runsInto(t, r) {
			continue
		}
		if r.Memory == 0 || s.alone(t) {
			return r
		}
		if left -= s.unused(r, g); left < 0 {
			return r
		}
	}
	return nil
}

// unused is the memory that a reservation keeps on a GPU beyond what the tasks that
// it is for have there already.
func (s *State) unused(r *Reservation, g *GPU) units.Bytes {
	left := r.Memory
	for i := range g.Residents {
		if t := s.tasks[g.Residents[i].Task]; t != nil && r.isFor(t) {
			left -= g.Residents[i].taken()
		}
	}
	return max(0, left)
}

// withheld is the memory of a GPU that a task may not be granted, as it is reserved.
func (s *State) withheld(t *Task, g *GPU) (sum units.Bytes) {
	for _, r := range s.reservations {
		if !r.isFor(t) && slices.Contains(r.GPUs, g.ID) && s.runsInto(t, r) {
			sum += s.unused(r, g)
		}
	}
	return sum
}

// barred reports whether too few GPUs could take a task if nothing else ran, as
// others are reserved, are not those that it is to go to, or are of a machine of
// which helpers have too much. It is in nobody's way.
func (s *State) barred(t *Task) bool {
	if s.helpersBar(t) {
		return true
	}
	if t.GPUs == 0 || len(s.reservations) == 0 && len(t.Pinned) == 0 {
		return false
	}
	var able []*GPU
	for _, g := range s.gpus {
		if s.roomFor(t, g) >= max(t.needs(g), 1) && !s.reservedByUser(t, g) {
			able = append(able, g)
		}
	}
	return len(ofMachinesWith(t.GPUs, able)) < t.GPUs
}

// reservedByUser reports whether a task may not go to a GPU however much room there is.
func (s *State) reservedByUser(t *Task, g *GPU) bool {
	if !t.mayGoTo(g.ID) || t.GPUs > 1 && g.MIG || !s.resumeTargets(t, g) {
		return true
	}
	return slices.ContainsFunc(s.reservations, func(r *Reservation) bool {
		return !r.isFor(t) && slices.Contains(r.GPUs, g.ID) && s.runsInto(t, r) &&
			(r.Memory == 0 || s.alone(t) || s.room(g, false)-s.unused(r, g) < max(t.needs(g), 1))
	})
}

// LastReservation is the highest number that a reservation has had.
func (s *State) LastReservation() int { return s.lastReservation }

// Reservations lists what is reserved, the earliest begin first. What it returns is
// the caller's.
func (s *State) Reservations() []Reservation {
	all := make([]Reservation, 0, len(s.reservations))
	for _, r := range s.reservations {
		c := *r
		c.GPUs = slices.Clone(r.GPUs)
		all = append(all, c)
	}
	slices.SortStableFunc(all, func(a, b Reservation) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.ID, b.ID)) })
	return all
}
