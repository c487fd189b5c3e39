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
	// Sharing says how tasks share the GPU.
	Sharing Sharing `json:"sharing,omitempty"`
	// Boot names the machine's boot, or is empty if not known. A new boot resets the GPU.
	Boot string `json:"boot,omitempty"`
	// MIG: it is a MIG instance, a part of a card. A program can use only one instance at
	// a time, so a task on several GPUs gets none.
	MIG bool `json:"part,omitempty"`
	// Link names the GPUs of its machine that are connected to it by NVLink, Socket the
	// GPUs at its NUMA node; each is empty if there are none or it is not known.
	Link   string `json:"link,omitempty"`
	Socket string `json:"socket,omitempty"`
	// Suspend says how tasks on this GPU can be suspended.
	Suspend SuspendKind `json:"suspend,omitempty"`
	// SuspendAlone: only exclusive tasks can be suspended. The others are MPS clients.
	SuspendAlone bool `json:"suspend_alone,omitempty"`
}

// Sharing says how tasks share a GPU.
type Sharing string

// The kinds of sharing. Journals of older versions have none; policy carma then predicts
// as for MPS.
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
	// OtherProcesses is the memory used by processes that are not carma's.
	OtherProcesses units.Bytes `json:"foreign,omitempty"`
	// SMACT, SMOCC and DRAMA are scores over the monitor's window, 0 to 1.
	SMACT float64 `json:"smact"`
	SMOCC float64 `json:"smocc"`
	DRAMA float64 `json:"drama"`
	// Coarse: the scores are upper bounds, from the share of time in which any kernel
	// ran. Journals of older versions do not have it.
	Coarse bool `json:"coarse,omitempty"`
	// Tasks lists the use by each of carma's tasks.
	Tasks []TaskUse `json:"tasks,omitempty"`
	// Fault is empty while the GPU is healthy. A faulty GPU gets no new tasks.
	Fault string `json:"fault,omitempty"`
	// UntilReset: the fault lasts until the GPU is reset. FromDriver: the driver itself
	// reports it.
	UntilReset bool `json:"lasts,omitempty"`
	FromDriver bool `json:"told,omitempty"`
}

// TaskUse is one task's use of one GPU: memory, and the share of time in which one of its
// kernels ran, 0 to 1, over the monitor's window. The share is known only if Timed is
// set; journals of older versions do not have it. It is an upper bound of the SM activity
// that the task causes.
type TaskUse struct {
	Task   TaskID      `json:"task"`
	Used   units.Bytes `json:"used"`
	Active float64     `json:"active,omitempty"`
	Timed  bool        `json:"timed,omitempty"`
}

// GPU is the ledger's entry for one GPU.
//
// Invariant after every step: Reserved <= Bookable; and, as long as neither
// OtherProcesses nor the headroom has grown since the last allocation, Reserved +
// OtherProcesses + headroom <= Capacity.
type GPU struct {
	GPUInfo
	// Reserved is the sum of the grants of the tasks placed here.
	Reserved units.Bytes `json:"reserved"`
	// Bookable is the limit for the sum of the grants at the last allocation: the
	// capacity less the headroom at that time.
	Bookable units.Bytes `json:"bookable"`
	// Used, OtherProcesses, the scores and Coarse are from the last sample.
	Used           units.Bytes `json:"used"`
	OtherProcesses units.Bytes `json:"foreign"`
	SMACT          float64     `json:"smact"`
	SMOCC          float64     `json:"smocc"`
	DRAMA          float64     `json:"drama"`
	Coarse         bool        `json:"coarse,omitempty"`
	// Read: there was a sample since the GPUs were found.
	Read bool `json:"read,omitempty"`
	// ReadSince is the instant since which samples have the present Coarse, or 0 if
	// always.
	ReadSince units.Instant `json:"read_since,omitempty"`
	Fault     string        `json:"fault,omitempty"`
	// Persistent is a fault that lasts until the GPU is reset, or nil.
	Persistent *GPUFault `json:"broken,omitempty"`
	// Breaker is set while containers do not start here.
	Breaker *breaker `json:"sick,omitempty"`
	// Residents are the tasks placed here, in order of launch.
	Residents []Resident `json:"residents,omitempty"`
	// Overran are the tasks that recently exceeded their grants and left too little for
	// others, the latest last. They may have ended since.
	Overran []Overran `json:"overran,omitempty"`
	// Cordon is set while the GPU is cordoned.
	Cordon *Cordon `json:"closed,omitempty"`
	// Residue is the memory that suspended tasks still hold here. OtherProcesses includes
	// it.
	Residue []SuspendedResidue `json:"behind,omitempty"`
	// NominatedFor is the task for which others are suspended here, see preempt.go, or 0.
	NominatedFor TaskID `json:"claim,omitempty"`
	// Missing: the GPU was not in the latest inventory.
	Missing bool `json:"missing,omitempty"`
	// ChangedAt is the instant at which a task last came, began to run, or left.
	ChangedAt units.Instant `json:"changed_at,omitempty"`
	// SeenAt is the ChangedAt for which the loads of new tasks were last estimated.
	SeenAt units.Instant `json:"seen_at,omitempty"`

	pos int // in State.gpus

	// version counts the changes of anything that a task may find here, turnover the
	// changes of the tasks here and of their expected loads.
	version  int
	turnover int
	observer gpuObserver // or nil

	// Sums over the residents, stored because each step needs them for every GPU; settle
	// computes them.
	committed units.Bytes
	warmUntil units.Instant
}

// Resident is one task on a GPU.
type Resident struct {
	Task      TaskID      `json:"task"`
	Grant     units.Bytes `json:"grant"`
	Exclusive bool        `json:"alone,omitempty"`
	Used      units.Bytes `json:"used"` // last sample
	Peak      units.Bytes `json:"peak"` // highest sample
	// Active is the share of time in which its kernels ran, over the window of the last
	// sample. It is valid only if Timed.
	Active float64 `json:"active,omitempty"`
	Timed  bool    `json:"timed,omitempty"`
	// GrewAt is the instant of its highest sample so far, ShrinkAt the instant at which
	// the grant may be cut, or 0 if no cut is planned.
	GrewAt   units.Instant `json:"grew_at,omitempty"`
	ShrinkAt units.Instant `json:"shrink_at,omitempty"`
	// OverSince is the instant since which it exceeds its grant, or 0 if it does not.
	OverSince units.Instant `json:"over_since,omitempty"`
	// QuietSince is the instant since which the GPU has been idle for it, or 0 if it is
	// busy or that is not known.
	QuietSince units.Instant `json:"quiet_since,omitempty"`
	// Share is the part of the GPU for which its user is charged, in millionths.
	Share int64 `json:"share,omitempty"`
	// Load is the load that the task is expected to put on this GPU, Speed its predicted
	// speed here by the interference model, 1 alone.
	Load  interference.Load `json:"load"`
	Speed float64           `json:"speed"`
	// Doubt is the standard deviation of the SM activity in Load. Unseen: its activity
	// here is a guess, because samples have not shown it yet.
	Doubt  float64 `json:"doubt,omitempty"`
	Unseen bool    `json:"unseen,omitempty"`
	// Believed is the estimate of its SM activity from before the tasks on the GPU
	// changed at BelievedAt.
	Believed   posterior     `json:"believed,omitzero"`
	BelievedAt units.Instant `json:"believed_at,omitempty"`
	// Bound: Load was found in coarse samples, so it is no fact about the task.
	Bound bool `json:"bound,omitempty"`
	// Learning: its memory is not known yet. ActiveAt is the instant at which it was
	// first seen busy, or 0.
	Learning bool          `json:"learning,omitempty"`
	ActiveAt units.Instant `json:"active_at,omitempty"`
	// SettledAt is its peak when its memory seemed to be known, or 0 before.
	SettledAt units.Bytes `json:"settled_at,omitempty"`
	// Observed is the activity that samples have shown while it was alone here.
	Observed observedLoad `json:"seen"`
	// WarmUntil closes the GPU to further tasks while this one warms up. It is
	// units.Never until its container has started, and 0 without a warm-up.
	WarmUntil units.Instant `json:"warm_until"`
}

// taken returns the memory that counts as taken by a resident: its grant, or its use if
// that is more.
func (r *Resident) taken() units.Bytes { return max(r.Grant, r.Used) }

// Committed returns the memory that another task cannot have: the memory taken by the
// residents plus the memory of other processes.
func (g *GPU) Committed() units.Bytes {
	sum := g.OtherProcesses
	for i := range g.Residents {
		sum += g.Residents[i].taken()
	}
	return sum
}

// Free returns the memory that can still be allocated beside the headroom; it may be
// negative.
func (g *GPU) Free(headroom units.Bytes) units.Bytes { return g.Capacity - headroom - g.Committed() }

func (g *GPU) idle() bool { return len(g.Residents) == 0 }

func (g *GPU) alone() bool { return len(g.Residents) > 0 && g.Residents[0].Exclusive }

func (g *GPU) warming(now units.Instant) bool { return g.warmUntil > now }

// free returns the memory that can still be allocated on a GPU beside the headroom, as
// the booking option counts it.
func (l *ledger) free(g *GPU) units.Bytes {
	if l.opt.Booking == BookSamples {
		return g.Capacity - l.opt.Headroom - max(g.Used, g.OtherProcesses)
	}
	return g.Capacity - l.opt.Headroom - g.committed
}

// settle updates the sums after every change of the residents or of OtherProcesses.
func (g *GPU) settle() {
	g.changed()
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
	if g.Reserved += r.Grant; r.Grant > 0 { // else the earlier allocations stay within the earlier limit
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
	c.Residents, c.version, c.turnover, c.observer = append([]Resident(nil), g.Residents...), 0, 0, nil
	c.Overran = append([]Overran(nil), g.Overran...)
	c.Breaker = g.Breaker.clone()
	return &c
}

// gpuObserver is called at each change of a GPU.
type gpuObserver interface{ gpuChanged(g *GPU) }

// changed records that a GPU has changed. Whoever changes an input of gpuState, openState
// or short must call it; settle and forget do. TestProperties finds a missing call.
func (g *GPU) changed() {
	g.version++
	if g.observer != nil {
		g.observer.gpuChanged(g)
	}
}

// forget drops the forecast of a GPU after a change of its tasks.
func (g *GPU) forget() {
	g.changed()
	g.turnover++
}
