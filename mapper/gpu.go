package mapper

import (
	"carma/mapper/interference"
	"carma/mapper/units"
)

// GPUID is a GPU's UUID, unique over all machines.
type GPUID string

// GPUInfo describes a GPU as it was found.
type GPUInfo struct {
	ID       GPUID       `json:"id"`
	Node     string      `json:"node,omitempty"` // the machine it is in
	Index    int         `json:"index"`          // for display and tie-breaks only
	Model    string      `json:"model,omitempty"`
	Capacity units.Bytes `json:"capacity"`
}

// GPUSample is one reading of one GPU.
type GPUSample struct {
	ID   GPUID       `json:"id"`
	Used units.Bytes `json:"used"`
	// Foreign is memory in use by processes that are not carma's.
	Foreign units.Bytes `json:"foreign,omitempty"`
	// SMACT, SMOCC and DRAMA are scores over the monitor's window, 0 to 1.
	SMACT float64 `json:"smact"`
	SMOCC float64 `json:"smocc"`
	DRAMA float64 `json:"drama"`
	// Tasks is the memory in use by each of carma's tasks there.
	Tasks []TaskUse `json:"tasks,omitempty"`
	// Fault is empty while the GPU is well. A faulty GPU gets no new tasks.
	Fault string `json:"fault,omitempty"`
}

// TaskUse is the memory one task has in use on one GPU.
type TaskUse struct {
	Task TaskID      `json:"task"`
	Used units.Bytes `json:"used"`
}

// GPU is the ledger's page for one GPU.
//
// Invariant after every step: Reserved <= Bookable; and, as long as neither
// foreign use nor the headroom has grown since the last booking,
// Reserved + Foreign + headroom <= Capacity.
type GPU struct {
	GPUInfo
	// Reserved is the sum of the grants of the tasks placed here.
	Reserved units.Bytes `json:"reserved"`
	// Bookable is what the grants could sum to at the last booking: the
	// capacity less the headroom of then.
	Bookable units.Bytes `json:"bookable"`
	// Used, Foreign and the scores are those of the last sample.
	Used    units.Bytes `json:"used"`
	Foreign units.Bytes `json:"foreign"`
	SMACT   float64     `json:"smact"`
	SMOCC   float64     `json:"smocc"`
	DRAMA   float64     `json:"drama"`
	Fault   string      `json:"fault,omitempty"`
	// Sick is set while containers do not start here.
	Sick *illness `json:"sick,omitempty"`
	// Residents are the tasks placed here, in order of launch.
	Residents []Resident `json:"residents,omitempty"`
	// Missing: the GPU was not found when the machine was last looked at.
	Missing bool `json:"missing,omitempty"`
	// ChangedAt is when a task last came, began to run, or went.
	ChangedAt units.Instant `json:"changed_at,omitempty"`
	// SeenAt is the ChangedAt for which strangers there were last looked at.
	SeenAt units.Instant `json:"seen_at,omitempty"`

	pos int // in State.gpus

	notes gpuNotes

	// What the residents come to, kept because each step asks for it of every
	// GPU; settle works it out.
	committed units.Bytes
	warmUntil units.Instant
}

// Resident is one task's place on a GPU.
type Resident struct {
	Task  TaskID      `json:"task"`
	Grant units.Bytes `json:"grant"`
	Alone bool        `json:"alone,omitempty"`
	Used  units.Bytes `json:"used"` // last sample
	Peak  units.Bytes `json:"peak"` // highest sample
	// GrewAt is when a sample last was the highest, ShrinkAt when the grant is
	// looked at for it; 0: it is not going to be.
	GrewAt   units.Instant `json:"grew_at,omitempty"`
	ShrinkAt units.Instant `json:"shrink_at,omitempty"`
	// OverSince is since when it has used more than its grant; 0: it does not.
	OverSince units.Instant `json:"over_since,omitempty"`
	// Share is the part of the GPU that its user is charged for, in millionths.
	Share int64 `json:"share,omitempty"`
	// Load is what the task is expected to do to this GPU, and Speed what the
	// interference model says of it here, 1 alone.
	Load  interference.Load `json:"load"`
	Speed float64           `json:"speed"`
	// Seen is the activity that samples have shown while it was alone here.
	Seen sightings `json:"seen"`
	// WarmUntil closes the GPU to further tasks while this one warms up;
	// never, until its container has started; 0 without a warm-up.
	WarmUntil units.Instant `json:"warm_until"`
}

// taken is the memory that counts as taken by a resident: its grant, or what it
// uses where that is more.
func (r *Resident) taken() units.Bytes { return max(r.Grant, r.Used) }

// Committed is the memory that a newcomer cannot have: what the residents have
// taken plus what foreign processes use.
func (g *GPU) Committed() units.Bytes {
	sum := g.Foreign
	for i := range g.Residents {
		sum += g.Residents[i].taken()
	}
	return sum
}

// Free is what can be booked next to the headroom; it may be negative.
func (g *GPU) Free(headroom units.Bytes) units.Bytes { return g.Capacity - headroom - g.Committed() }

func (g *GPU) idle() bool { return len(g.Residents) == 0 }

func (g *GPU) alone() bool { return len(g.Residents) > 0 && g.Residents[0].Alone }

func (g *GPU) warming(now units.Instant) bool { return g.warmUntil > now }

// free is what can be booked on a GPU next to the headroom, as the booking
// option counts it.
func (s *State) free(g *GPU) units.Bytes {
	if s.opt.Booking == BookSamples {
		return g.Capacity - s.opt.Headroom - max(g.Used, g.Foreign)
	}
	return g.Capacity - s.opt.Headroom - g.committed
}

// settle follows every change of the residents and of the foreign use.
func (g *GPU) settle() {
	g.committed, g.warmUntil = g.Committed(), 0
	for i := range g.Residents {
		g.warmUntil = max(g.warmUntil, g.Residents[i].WarmUntil)
	}
}

func (g *GPU) resident(id TaskID) *Resident {
	for i := range g.Residents {
		if g.Residents[i].Task == id {
			return &g.Residents[i]
		}
	}
	return nil
}

func (g *GPU) add(r Resident, headroom units.Bytes) {
	g.Residents = append(g.Residents, r)
	if g.Reserved += r.Grant; r.Grant > 0 { // else the bookings of before stay within what there was then
		g.Bookable = g.Capacity - headroom
	}
	g.settle()
}

func (g *GPU) remove(id TaskID) {
	for i, r := range g.Residents {
		if r.Task == id {
			g.Reserved -= r.Grant
			g.Residents = append(g.Residents[:i], g.Residents[i+1:]...)
			g.settle()
			return
		}
	}
}

func (g *GPU) clone() *GPU {
	c := *g
	c.Residents, c.notes = append([]Resident(nil), g.Residents...), gpuNotes{}
	c.Sick = g.Sick.clone()
	return &c
}
