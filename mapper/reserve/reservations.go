package reserve

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"carma/internal/units"
	"carma/mapper/ledger"
	"carma/mapper/model"
	"carma/mapper/predict"
	"carma/mapper/queue"
)

// Reservations holds what is reserved: GPUs for users at later times, and GPUs or host
// memory for the first task that does not fit. It answers whether a task may use the
// memory of a GPU or a machine beside them.
type Reservations struct {
	*ledger.Ledger
	predictor *predict.Predictor
	queue     *queue.Queue

	list []*model.Reservation // in order of number
	last int                  // the highest number so far
	head Head
}

// New returns reservations of which there are none.
func New(l *ledger.Ledger, pr *predict.Predictor, q *queue.Queue) *Reservations {
	return &Reservations{Ledger: l, predictor: pr, queue: q}
}

// Clone returns a copy for copies of the ledger, the predictor and the queue.
func (rs *Reservations) Clone(l *ledger.Ledger, pr *predict.Predictor, q *queue.Queue) *Reservations {
	c := New(l, pr, q)
	c.list, c.last = make([]*model.Reservation, len(rs.list)), rs.last
	for i, r := range rs.list {
		c.list[i] = new(*r)
	}
	c.head = rs.head.clone()
	return c
}

// Any reports whether there is any reservation for a user.
func (rs *Reservations) Any() bool { return len(rs.list) > 0 }

// Drop ends some reservations, and reports whether there were any of them.
func (rs *Reservations) Drop(which func(*model.Reservation) bool) bool {
	n := len(rs.list)
	rs.list = slices.DeleteFunc(rs.list, which)
	return len(rs.list) < n
}

// Snapshot is the section of a snapshot about reservations.
type Snapshot struct {
	Reserved []*model.Reservation `json:"reserved,omitempty"`
	LastRes  int                  `json:"last_reservation,omitempty"`
	Kept     Head                 `json:"hold"`
}

// Save returns the section of the snapshot. Its lists are shared: do not change them.
func (rs *Reservations) Save() Snapshot {
	return Snapshot{Reserved: rs.list, LastRes: rs.last, Kept: rs.head}
}

// Restore replaces the reservations by a section of a snapshot, or returns an error if the
// section is inconsistent.
func (rs *Reservations) Restore(snap Snapshot) error {
	for _, r := range snap.Reserved {
		if r == nil || r.ID < 1 || r.ID > snap.LastRes || len(r.GPUs) == 0 {
			return fmt.Errorf("a reservation is empty or has a number that was not given")
		}
	}
	rs.list, rs.last, rs.head = snap.Reserved, snap.LastRes, snap.Kept
	return nil
}

const (
	// reservedKnown is the factor by which a run with a known time may take longer before
	// a reservation. For other run times it is that of a typical one.
	reservedKnown = 1.5
	// reservedAhead is the time before a reservation in which no task with an unknown run
	// time is started.
	reservedAhead = 4 * time.Hour
)

// Add adds a reservation with the next number. It ignores one without GPUs, without time,
// or for nobody: the submitting program checks that.
func (rs *Reservations) Add(ev model.Reserved) {
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

// latestEnd returns the latest likely end of a task that is started now, or false if its
// run time is not known.
func (rs *Reservations) latestEnd(t *model.Task) (units.Instant, bool) {
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
func (rs *Reservations) runsInto(t *model.Task, r *model.Reservation) bool {
	if r.Until <= rs.Now() {
		return false
	}
	end, known := rs.latestEnd(t)
	if !known {
		end = rs.Now().Add(reservedAhead)
	}
	return r.From <= rs.Now() || end > r.From
}

// Against returns the reservation that keeps a task off a GPU with otherwise enough
// room, or nil.
func (rs *Reservations) Against(t *model.Task, g *model.GPU) *model.Reservation {
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
func (rs *Reservations) unused(r *model.Reservation, g *model.GPU) units.Bytes {
	left := r.Memory
	for i := range g.Residents {
		if t := rs.TaskByID(g.Residents[i].Task); t != nil && r.IsFor(t) {
			left -= g.Residents[i].Taken()
		}
	}
	return max(0, left)
}

// Withheld returns the reserved memory of a GPU that a task may not be granted.
func (rs *Reservations) Withheld(t *model.Task, g *model.GPU) (sum units.Bytes) {
	for _, r := range rs.list {
		if !r.IsFor(t) && slices.Contains(r.GPUs, g.ID) && rs.runsInto(t, r) {
			sum += rs.unused(r, g)
		}
	}
	return sum
}

// IsBarred reports whether too few GPUs could take a task even if nothing else ran, because
// the others are reserved, it is not pinned to them, or helpers use too much of their
// machine. Such a task blocks no other.
func (rs *Reservations) IsBarred(t *model.Task) bool {
	if rs.helpersBar(t) {
		return true
	}
	if t.GPUs == 0 || len(rs.list) == 0 && len(t.Pinned) == 0 {
		return false
	}
	var able []*model.GPU
	for _, g := range rs.GPUList() {
		if rs.RoomFor(t, g) >= max(t.NeedOn(g), 1) && !rs.IsReserved(t, g) {
			able = append(able, g)
		}
	}
	return len(ledger.OfMachinesWith(t.GPUs, able)) < t.GPUs
}

// IsReserved reports whether a task may not use a GPU however much room there is.
func (rs *Reservations) IsReserved(t *model.Task, g *model.GPU) bool {
	if !t.MayUse(g.ID) || t.GPUs > 1 && g.MIG || !rs.ResumeTargets(t, g) {
		return true
	}
	return slices.ContainsFunc(rs.list, func(r *model.Reservation) bool {
		return !r.IsFor(t) && slices.Contains(r.GPUs, g.ID) && rs.runsInto(t, r) &&
			(r.Memory == 0 || rs.RunsAlone(t) || rs.Room(g, false)-rs.unused(r, g) < max(t.NeedOn(g), 1))
	})
}

// LastReservation returns the highest reservation number so far.
func (rs *Reservations) LastReservation() int { return rs.last }

// Reservations lists copies of the reservations, the earliest begin first.
func (rs *Reservations) Reservations() []model.Reservation {
	all := make([]model.Reservation, 0, len(rs.list))
	for _, r := range rs.list {
		c := *r
		c.GPUs = slices.Clone(r.GPUs)
		all = append(all, c)
	}
	slices.SortStableFunc(all, func(a, b model.Reservation) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.ID, b.ID)) })
	return all
}
