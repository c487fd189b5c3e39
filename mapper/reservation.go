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

func (rs *reservations) reserved(ev model.Reserved) {
	r := ev.Reservation
	r.GPUs = slices.Clone(r.GPUs)
	slices.Sort(r.GPUs)
	r.GPUs = slices.Compact(r.GPUs)
	r.From = max(r.From, rs.Now())
	if r.Until <= r.From || len(r.GPUs) == 0 || r.Memory < 0 || (r.User == "") == (r.Account == "") {
		return
	}
	rs.last++
	r.ID = rs.last
	rs.list = append(rs.list, &r)
	rs.SetTimer(r.Until, ledger.Timer{})
	rs.MarkDirty()
}

func (s *State) unreserved(ev model.Unreserved) {
	s.placer.dropReservations(func(r *model.Reservation) bool { return r.ID == ev.ID })
}

// dropReservations ends some reservations. Tasks rejected for them are tried again.
func (pl *placer) dropReservations(which func(*model.Reservation) bool) {
	if pl.reserve.drop(which) {
		pl.dropCache()
		pl.MarkDirty()
	}
}

// latestEnd returns the latest likely end of a task that is started now, or false if its
// run time is not known.
func (rs *reservations) latestEnd(t *model.Task) (units.Instant, bool) {
	run, basis := rs.predictor.RunTime(t)
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
	return rs.Now().Add(run), run > 0
}

// runsInto reports whether a task that is started now would run into a reservation.
func (rs *reservations) runsInto(t *model.Task, r *model.Reservation) bool {
	if r.Until <= rs.Now() {
		return false
	}
	end, known := rs.latestEnd(t)
	if !known {
		end = rs.Now().Add(reservedAhead)
	}
	return r.From <= rs.Now() || end > r.From
}

// reservation returns the reservation that keeps a task off a GPU with otherwise enough
// room, or nil.
func (rs *reservations) reservation(t *model.Task, g *model.GPU) *model.Reservation {
	left := rs.FreeFor(t, g) - rs.NeedOn(t, g)
	for _, r := range rs.list {
		if r.IsFor(t) || !slices.Contains(r.GPUs, g.ID) || !rs.runsInto(t, r) {
			continue
		}
		if r.Memory == 0 || rs.RunsAlone(t) {
			return r
		}
		if left -= rs.unused(r, g); left < 0 {
			return r
		}
	}
	return nil
}

// unused returns the memory that a reservation keeps on a GPU beyond the memory of the
// beneficiary's tasks there.
func (rs *reservations) unused(r *model.Reservation, g *model.GPU) units.Bytes {
	left := r.Memory
	for i := range g.Residents {
		if t := rs.TaskByID(g.Residents[i].Task); t != nil && r.IsFor(t) {
			left -= g.Residents[i].Taken()
		}
	}
	return max(0, left)
}

// withheld returns the reserved memory of a GPU that a task may not be granted.
func (rs *reservations) withheld(t *model.Task, g *model.GPU) (sum units.Bytes) {
	for _, r := range rs.list {
		if !r.IsFor(t) && slices.Contains(r.GPUs, g.ID) && rs.runsInto(t, r) {
			sum += rs.unused(r, g)
		}
	}
	return sum
}

// barred reports whether too few GPUs could take a task even if nothing else ran, because
// the others are reserved, it is not pinned to them, or helpers use too much of their
// machine. Such a task blocks no other.
func (rs *reservations) barred(t *model.Task) bool {
	if rs.helpersBar(t) {
		return true
	}
	if t.GPUs == 0 || len(rs.list) == 0 && len(t.Pinned) == 0 {
		return false
	}
	var able []*model.GPU
	for _, g := range rs.GPUList() {
		if rs.RoomFor(t, g) >= max(t.NeedOn(g), 1) && !rs.reservedByUser(t, g) {
			able = append(able, g)
		}
	}
	return len(ofMachinesWith(t.GPUs, able)) < t.GPUs
}

// reservedByUser reports whether a task may not use a GPU however much room there is.
func (rs *reservations) reservedByUser(t *model.Task, g *model.GPU) bool {
	if !t.MayUse(g.ID) || t.GPUs > 1 && g.MIG || !rs.ResumeTargets(t, g) {
		return true
	}
	return slices.ContainsFunc(rs.list, func(r *model.Reservation) bool {
		return !r.IsFor(t) && slices.Contains(r.GPUs, g.ID) && rs.runsInto(t, r) &&
			(r.Memory == 0 || rs.RunsAlone(t) || rs.Room(g, false)-rs.unused(r, g) < max(t.NeedOn(g), 1))
	})
}

// LastReservation returns the highest reservation number so far.
func (rs *reservations) LastReservation() int { return rs.last }

// Reservations lists copies of the reservations, the earliest begin first.
func (rs *reservations) Reservations() []model.Reservation {
	all := make([]model.Reservation, 0, len(rs.list))
	for _, r := range rs.list {
		c := *r
		c.GPUs = slices.Clone(r.GPUs)
		all = append(all, c)
	}
	slices.SortStableFunc(all, func(a, b model.Reservation) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.ID, b.ID)) })
	return all
}
