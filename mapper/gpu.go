package mapper

import (
	"carma/internal/units"
	"carma/mapper/interference"
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
	// Sharing is how tasks share it.
	Sharing Sharing `json:"sharing,omitempty"`
	// Boot names the machine's boot: another one has reset the GPU. Empty: not known.
	Boot string `json:"boot,omitempty"`
	// Part: it is a part of a card, a MIG instance. A program can use one of these at
	// a time, so a task on several GPUs gets none.
	MIG bool `json:"part,omitempty"`
	// Link names the GPUs of its machine that NVLink joins with it, Socket those at its
	// NUMA node; empty: none, or not known.
	Link   string `json:"link,omitempty"`
	Socket string `json:"socket,omitempty"`
	// Suspend is what can be done with a task on it without ending it.
	Suspend SuspendKind `json:"suspend,omitempty"`
	// SuspendAlone: only tasks that have it alone. The others are clients of MPS.
	SuspendAlone bool `json:"suspend_alone,omitempty"`
}

// Sharing is how tasks share a GPU.
type Sharing string

// The ways to share. Journals of older versions have none: policy carma then
// predicted as for MPS.
const (
	SharingMPS   Sharing = ""             // kernels of several tasks at once, by MPS
	SharingUsers Sharing = "mps-user"     // the same for the tasks of one user; users take turns
	SharingTurns Sharing = "time-slicing" // tasks take turns
	SharingAlone Sharing = "alone"        // one task at a time
)

// GPUSample is one reading of one GPU.
type GPUSample struct {
	ID   GPUID       `json:"id"`
	Used units.Bytes `json:"used"`
	// Foreign is memory in use by processes that are not carma's.
	OtherProcesses units.Bytes `json:"foreign,omitempty"`
	// SMACT, SMOCC and DRAMA are scores over the monitor's window, 0 to 1.
	SMACT float64 `json:"smact"`
	SMOCC float64 `json:"smocc"`
	DRAMA float64 `json:"drama"`
	// Coarse: they are upper bounds, from the share of time in which any kernel
	// ran. Journals of older versions do not tell.
	Coarse bool `json:"coarse,omitempty"`
	// Tasks is what each of carma's tasks there uses.
	Tasks []TaskUse `json:"tasks,omitempty"`
	// Fault is empty while the GPU is well. A faulty GPU gets no new tasks.
	Fault string `json:"fault,omitempty"`
	// Lasts: the fault lasts until the GPU is reset. Told: the driver says so itself.
	UntilReset bool `json:"lasts,omitempty"`
	FromDriver bool `json:"told,omitempty"`
}

// TaskUse is what one task uses of one GPU: memory, and the share of time in which a
// kernel of it ran, 0 to 1, over the monitor's window. The share is known only if
// Timed is set; journals of older versions do not tell it. It bounds the SM activity
// that the task causes.
type TaskUse struct {
	Task   TaskID      `json:"task"`
	Used   units.Bytes `json:"used"`
	Active float64     `json:"active,omitempty"`
	Timed  bool        `json:"timed,omitempty"`
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
	// Used, Foreign, the scores and Coarse are those of the last sample.
	Used           units.Bytes `json:"used"`
	OtherProcesses units.Bytes `json:"foreign"`
	SMACT          float64     `json:"smact"`
	SMOCC          float64     `json:"smocc"`
	DRAMA          float64     `json:"drama"`
	Coarse         bool        `json:"coarse,omitempty"`
	// Read: there was a sample since the GPUs were found.
	Read bool `json:"read,omitempty"`
	// ReadSince is since when samples are coarse, or are not; 0: always.
	ReadSince units.Instant `json:"read_since,omitempty"`
	Fault     string        `json:"fault,omitempty"`
	// Broken is a fault that lasts until the GPU is reset; nil: there is none.
	Persistent *GPUFault `json:"broken,omitempty"`
	// Sick is set while containers do not start here.
	Breaker *breaker `json:"sick,omitempty"`
	// Residents are the tasks placed here, in order of launch.
	Residents []Resident `json:"residents,omitempty"`
	// Overran are the tasks that lately used more than their grants and left too little
	// for others, the last one last. They may have ended since.
	Overran []Overran `json:"overran,omitempty"`
	// Closed: it is drained; nil: it is open.
	Cordon *Cordon `json:"closed,omitempty"`
	// Behind is what suspended tasks still have here, in Foreign.
	Residue []SuspendedResidue `json:"behind,omitempty"`
	// Claim is the task for which others leave it, see preempt.go; 0: none.
	NominatedFor TaskID `json:"claim,omitempty"`
	// Missing: the GPU was not found when the machine was last looked at.
	Missing bool `json:"missing,omitempty"`
	// ChangedAt is when a task last came, began to run, or went.
	ChangedAt units.Instant `json:"changed_at,omitempty"`
	// SeenAt is the ChangedAt for which strangers there were last looked at.
	SeenAt units.Instant `json:"seen_at,omitempty"`

	pos int // in State.gpus

	cache gpuCache

	// What the residents come to, kept because each step asks for it of every
	// GPU; settle works it out.
	committed units.Bytes
	warmUntil units.Instant
}

// Resident is one task's place on a GPU.
type Resident struct {
	Task      TaskID      `json:"task"`
	Grant     units.Bytes `json:"grant"`
	Exclusive bool        `json:"alone,omitempty"`
	Used      units.Bytes `json:"used"` // last sample
	Peak      units.Bytes `json:"peak"` // highest sample
	// Active is the share of time in which its kernels ran, over the window of the
	// last sample; only if Timed, else it is not known.
	Active float64 `json:"active,omitempty"`
	Timed  bool    `json:"timed,omitempty"`
	// GrewAt is when a sample last was the highest, ShrinkAt when the grant is
	// looked at for it; 0: it is not going to be.
	GrewAt   units.Instant `json:"grew_at,omitempty"`
	ShrinkAt units.Instant `json:"shrink_at,omitempty"`
	// OverSince is since when it has used more than its grant; 0: it does not.
	OverSince units.Instant `json:"over_since,omitempty"`
	// QuietSince is since when the GPU has done nothing for it; 0: it does, or that
	// is not known.
	QuietSince units.Instant `json:"quiet_since,omitempty"`
	// Share is the part of the GPU that its user is charged for, in millionths.
	Share int64 `json:"share,omitempty"`
	// Load is what the task is expected to do to this GPU, and Speed what the
	// interference model says of it here, 1 alone.
	Load  interference.Load `json:"load"`
	Speed float64           `json:"speed"`
	// Doubt is the standard deviation of the SM activity in Load. Unseen: its
	// activity here is a guess; samples have not shown it yet.
	Doubt  float64 `json:"doubt,omitempty"`
	Unseen bool    `json:"unseen,omitempty"`
	// Believed is what was thought of its SM activity before the tasks on the GPU
	// changed at BelievedAt.
	Believed   posterior     `json:"believed,omitzero"`
	BelievedAt units.Instant `json:"believed_at,omitempty"`
	// Bound: Load was found in coarse samples. It is no fact about the task.
	Bound bool `json:"bound,omitempty"`
	// Learning: its memory is not known yet; ActiveAt is when it was first seen
	// to be busy, 0: not yet.
	Learning bool          `json:"learning,omitempty"`
	ActiveAt units.Instant `json:"active_at,omitempty"`
	// SettledAt is its peak when it seemed to be known; 0: not yet.
	SettledAt units.Bytes `json:"settled_at,omitempty"`
	// Seen is the activity that samples have shown while it was alone here.
	Observed observedLoad `json:"seen"`
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
	sum := g.OtherProcesses
	for i := range g.Residents {
		sum += g.Residents[i].taken()
	}
	return sum
}

// Free is what can be booked next to the headroom; it may be negative.
func (g *GPU) Free(headroom units.Bytes) units.Bytes { return g.Capacity - headroom - g.Committed() }

func (g *GPU) idle() bool { return len(g.Residents) == 0 }

func (g *GPU) alone() bool { return len(g.Residents) > 0 && g.Residents[0].Exclusive }

func (g *GPU) warming(now units.Instant) bool { return g.warmUntil > now }

// free is what can be booked on a GPU next to the headroom, as the booking
// option counts it.
func (s *State) free(g *GPU) units.Bytes {
	if s.opt.Booking == BookSamples {
		return g.Capacity - s.opt.Headroom - max(g.Used, g.OtherProcesses)
	}
	return g.Capacity - s.opt.Headroom - g.committed
}

// settleEnd follows every change of the residents and of the foreign use.
func (g *GPU) settle() {
	g.markDirty()
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
	c.Residents, c.cache = append([]Resident(nil), g.Residents...), gpuCache{}
	c.Overran = append([]Overran(nil), g.Overran...)
	c.Breaker = g.Breaker.clone()
	return &c
}
