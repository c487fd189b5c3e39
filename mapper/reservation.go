package mapper

import (
	"cmp"
	"slices"
	"time"

	"carma/internal/units"
)

// Reserved reserves GPUs, or memory on them, for a user or an account from one instant to
// another. The state numbers reservations from 1; the number in the event is ignored. A
// senseless reservation changes nothing.
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

// Reservation is a reservation of GPUs for a user or an account. Tasks that run when it
// begins continue. No task of anybody else is started if it would run into the
// reservation.
type Reservation struct {
	ID   int     `json:"id"`
	GPUs []GPUID `json:"gpus"`
	// Memory is the memory reserved on each of the GPUs, or 0 for the whole GPU.
	Memory units.Bytes `json:"memory,omitempty"`
	// User or Account is the beneficiary. The other is empty.
	User    string        `json:"user,omitempty"`
	Account string        `json:"account,omitempty"`
	From    units.Instant `json:"from"`
	Until   units.Instant `json:"until"`
	By      string        `json:"by,omitempty"`
	Why     string        `json:"why,omitempty"`
}

// RuleReserved: a GPU is reserved for somebody else, and the task would run into that.
const RuleReserved Rule = "reserved"

const (
	// reservedKnown is the factor by which a run with a known time may take longer before
	// a reservation. For other run times it is latenessTypical.
	reservedKnown = 1.5
	// reservedAhead is the time before a reservation in which no task with an unknown run
	// time is started.
	reservedAhead = 4 * time.Hour
)

func (q *schedulingQueue) reserved(ev Reserved) {
	r := ev.Reservation
	r.GPUs = slices.Clone(r.GPUs)
	slices.Sort(r.GPUs)
	r.GPUs = slices.Compact(r.GPUs)
	r.From = max(r.From, q.now)
	if r.Until <= r.From || len(r.GPUs) == 0 || r.Memory < 0 || (r.User == "") == (r.Account == "") {
		return
	}
	q.lastReservation++
	r.ID = q.lastReservation
	q.reservations = append(q.reservations, &r)
	q.at(r.Until, timer{})
	q.dirty = true
}

func (s *State) unreserved(ev Unreserved) {
	s.placer.dropReservations(func(r *Reservation) bool { return r.ID == ev.ID })
}

// dropReservations ends some reservations. Tasks rejected for them are tried again.
func (pl *placer) dropReservations(which func(*Reservation) bool) {
	n := len(pl.queue.reservations)
	pl.queue.reservations = slices.DeleteFunc(pl.queue.reservations, which)
	if len(pl.queue.reservations) < n {
		pl.dropCache()
		pl.dirty = true
	}
}

// isFor reports whether a reservation is for a task.
func (r *Reservation) isFor(t *Task) bool {
	return r.User != "" && r.User == t.User || r.Account != "" && r.Account == t.Account
}

// latestEnd returns the latest likely end of a task that is started now, or false if its
// run time is not known.
func (q *schedulingQueue) latestEnd(t *Task) (units.Instant, bool) {
	run, basis := q.predictor.runTime(t)
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
	return q.now.Add(run), run > 0
}

// runsInto reports whether a task that is started now would run into a reservation.
func (q *schedulingQueue) runsInto(t *Task, r *Reservation) bool {
	if r.Until <= q.now {
		return false
	}
	end, known := q.latestEnd(t)
	if !known {
		end = q.now.Add(reservedAhead)
	}
	return r.From <= q.now || end > r.From
}

// reservation returns the reservation that keeps a task off a GPU with otherwise enough
// room, or nil.
func (q *schedulingQueue) reservation(t *Task, g *GPU) *Reservation {
	left := q.freeFor(t, g) - q.needOn(t, g)
	for _, r := range q.reservations {
		if r.isFor(t) || !slices.Contains(r.GPUs, g.ID) || !q.runsInto(t, r) {
			continue
		}
		if r.Memory == 0 || q.alone(t) {
			return r
		}
		if left -= q.unused(r, g); left < 0 {
			return r
		}
	}
	return nil
}

// unused returns the memory that a reservation keeps on a GPU beyond the memory of the
// beneficiary's tasks there.
func (l *ledger) unused(r *Reservation, g *GPU) units.Bytes {
	left := r.Memory
	for i := range g.Residents {
		if t := l.tasks[g.Residents[i].Task]; t != nil && r.isFor(t) {
			left -= g.Residents[i].taken()
		}
	}
	return max(0, left)
}

// withheld returns the reserved memory of a GPU that a task may not be granted.
func (q *schedulingQueue) withheld(t *Task, g *GPU) (sum units.Bytes) {
	for _, r := range q.reservations {
		if !r.isFor(t) && slices.Contains(r.GPUs, g.ID) && q.runsInto(t, r) {
			sum += q.unused(r, g)
		}
	}
	return sum
}

// barred reports whether too few GPUs could take a task even if nothing else ran, because
// the others are reserved, it is not pinned to them, or helpers use too much of their
// machine. Such a task blocks no other.
func (q *schedulingQueue) barred(t *Task) bool {
	if q.helpersBar(t) {
		return true
	}
	if t.GPUs == 0 || len(q.reservations) == 0 && len(t.Pinned) == 0 {
		return false
	}
	var able []*GPU
	for _, g := range q.gpus {
		if q.roomFor(t, g) >= max(t.needs(g), 1) && !q.reservedByUser(t, g) {
			able = append(able, g)
		}
	}
	return len(ofMachinesWith(t.GPUs, able)) < t.GPUs
}

// reservedByUser reports whether a task may not use a GPU however much room there is.
func (q *schedulingQueue) reservedByUser(t *Task, g *GPU) bool {
	if !t.mayGoTo(g.ID) || t.GPUs > 1 && g.MIG || !q.resumeTargets(t, g) {
		return true
	}
	return slices.ContainsFunc(q.reservations, func(r *Reservation) bool {
		return !r.isFor(t) && slices.Contains(r.GPUs, g.ID) && q.runsInto(t, r) &&
			(r.Memory == 0 || q.alone(t) || q.room(g, false)-q.unused(r, g) < max(t.needs(g), 1))
	})
}

// LastReservation returns the highest reservation number so far.
func (q *schedulingQueue) LastReservation() int { return q.lastReservation }

// Reservations lists copies of the reservations, the earliest begin first.
func (q *schedulingQueue) Reservations() []Reservation {
	all := make([]Reservation, 0, len(q.reservations))
	for _, r := range q.reservations {
		c := *r
		c.GPUs = slices.Clone(r.GPUs)
		all = append(all, c)
	}
	slices.SortStableFunc(all, func(a, b Reservation) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.ID, b.ID)) })
	return all
}
