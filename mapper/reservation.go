package mapper

import (
	"cmp"
	"slices"
	"time"

	"carma/internal/units"
	"carma/mapper/ledger"
	"carma/mapper/model"
	"carma/mapper/predict"
)

const (
	// reservedKnown is the factor by which a run with a known time may take longer before
	// a reservation. For other run times it is that of a typical one.
	reservedKnown = 1.5
	// reservedAhead is the time before a reservation in which no task with an unknown run
	// time is started.
	reservedAhead = 4 * time.Hour
)

func (q *schedulingQueue) reserved(ev model.Reserved) {
	r := ev.Reservation
	r.GPUs = slices.Clone(r.GPUs)
	slices.Sort(r.GPUs)
	r.GPUs = slices.Compact(r.GPUs)
	r.From = max(r.From, q.Now())
	if r.Until <= r.From || len(r.GPUs) == 0 || r.Memory < 0 || (r.User == "") == (r.Account == "") {
		return
	}
	q.lastReservation++
	r.ID = q.lastReservation
	q.reservations = append(q.reservations, &r)
	q.SetTimer(r.Until, ledger.Timer{})
	q.MarkDirty()
}

func (s *State) unreserved(ev model.Unreserved) {
	s.placer.dropReservations(func(r *model.Reservation) bool { return r.ID == ev.ID })
}

// dropReservations ends some reservations. Tasks rejected for them are tried again.
func (pl *placer) dropReservations(which func(*model.Reservation) bool) {
	n := len(pl.queue.reservations)
	pl.queue.reservations = slices.DeleteFunc(pl.queue.reservations, which)
	if len(pl.queue.reservations) < n {
		pl.dropCache()
		pl.MarkDirty()
	}
}

// latestEnd returns the latest likely end of a task that is started now, or false if its
// run time is not known.
func (q *schedulingQueue) latestEnd(t *model.Task) (units.Instant, bool) {
	run, basis := q.predictor.RunTime(t)
	switch basis {
	case predict.Known:
		run = time.Duration(float64(run) * reservedKnown)
	case predict.Typical:
		run = time.Duration(float64(run) * predict.Typical.Lateness())
	default:
		run = 0
	}
	if t.TimeLimit > 0 && (run == 0 || t.TimeLimit < run) {
		run = t.TimeLimit
	}
	return q.Now().Add(run), run > 0
}

// runsInto reports whether a task that is started now would run into a reservation.
func (q *schedulingQueue) runsInto(t *model.Task, r *model.Reservation) bool {
	if r.Until <= q.Now() {
		return false
	}
	end, known := q.latestEnd(t)
	if !known {
		end = q.Now().Add(reservedAhead)
	}
	return r.From <= q.Now() || end > r.From
}

// reservation returns the reservation that keeps a task off a GPU with otherwise enough
// room, or nil.
func (q *schedulingQueue) reservation(t *model.Task, g *model.GPU) *model.Reservation {
	left := q.FreeFor(t, g) - q.NeedOn(t, g)
	for _, r := range q.reservations {
		if r.IsFor(t) || !slices.Contains(r.GPUs, g.ID) || !q.runsInto(t, r) {
			continue
		}
		if r.Memory == 0 || q.RunsAlone(t) {
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
func (q *schedulingQueue) unused(r *model.Reservation, g *model.GPU) units.Bytes {
	left := r.Memory
	for i := range g.Residents {
		if t := q.TaskByID(g.Residents[i].Task); t != nil && r.IsFor(t) {
			left -= g.Residents[i].Taken()
		}
	}
	return max(0, left)
}

// withheld returns the reserved memory of a GPU that a task may not be granted.
func (q *schedulingQueue) withheld(t *model.Task, g *model.GPU) (sum units.Bytes) {
	for _, r := range q.reservations {
		if !r.IsFor(t) && slices.Contains(r.GPUs, g.ID) && q.runsInto(t, r) {
			sum += q.unused(r, g)
		}
	}
	return sum
}

// barred reports whether too few GPUs could take a task even if nothing else ran, because
// the others are reserved, it is not pinned to them, or helpers use too much of their
// machine. Such a task blocks no other.
func (q *schedulingQueue) barred(t *model.Task) bool {
	if q.helpersBar(t) {
		return true
	}
	if t.GPUs == 0 || len(q.reservations) == 0 && len(t.Pinned) == 0 {
		return false
	}
	var able []*model.GPU
	for _, g := range q.GPUList() {
		if q.RoomFor(t, g) >= max(t.NeedOn(g), 1) && !q.reservedByUser(t, g) {
			able = append(able, g)
		}
	}
	return len(ofMachinesWith(t.GPUs, able)) < t.GPUs
}

// reservedByUser reports whether a task may not use a GPU however much room there is.
func (q *schedulingQueue) reservedByUser(t *model.Task, g *model.GPU) bool {
	if !t.MayUse(g.ID) || t.GPUs > 1 && g.MIG || !q.ResumeTargets(t, g) {
		return true
	}
	return slices.ContainsFunc(q.reservations, func(r *model.Reservation) bool {
		return !r.IsFor(t) && slices.Contains(r.GPUs, g.ID) && q.runsInto(t, r) &&
			(r.Memory == 0 || q.RunsAlone(t) || q.Room(g, false)-q.unused(r, g) < max(t.NeedOn(g), 1))
	})
}

// LastReservation returns the highest reservation number so far.
func (q *schedulingQueue) LastReservation() int { return q.lastReservation }

// Reservations lists copies of the reservations, the earliest begin first.
func (q *schedulingQueue) Reservations() []model.Reservation {
	all := make([]model.Reservation, 0, len(q.reservations))
	for _, r := range q.reservations {
		c := *r
		c.GPUs = slices.Clone(r.GPUs)
		all = append(all, c)
	}
	slices.SortStableFunc(all, func(a, b model.Reservation) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.ID, b.ID)) })
	return all
}
