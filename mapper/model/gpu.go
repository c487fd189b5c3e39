package model

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"carma/internal/units"
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
	// Sharing is the way in which tasks share the GPU.
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
	// Suspend is the way in which tasks on this GPU can be suspended.
	Suspend SuspendKind `json:"suspend,omitempty"`
	// SuspendAlone: only exclusive tasks can be suspended. The others are MPS clients.
	SuspendAlone bool `json:"suspend_alone,omitempty"`
}

// Sharing is the way in which tasks share a GPU.
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
	Breaker *Breaker `json:"sick,omitempty"`
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
	// NominatedFor is the task for which others are suspended here, or 0.
	NominatedFor TaskID `json:"claim,omitempty"`
	// Missing: the GPU was not in the latest inventory.
	Missing bool `json:"missing,omitempty"`
	// ChangedAt is the instant at which a task last came, began to run, or left.
	ChangedAt units.Instant `json:"changed_at,omitempty"`
	// SeenAt is the ChangedAt for which the loads of new tasks were last estimated.
	SeenAt units.Instant `json:"seen_at,omitempty"`

	pos int // see Pos

	// version counts the changes of anything that a task may find here, turnover the
	// changes of the tasks here and of their expected loads.
	version  int
	turnover int
	observer GPUObserver // or nil

	// Sums over the residents, stored because each step needs them for every GPU; Settle
	// computes them.
	committed units.Bytes
	warmUntil units.Instant
}

// Committed returns the memory that another task cannot have: the memory taken by the
// residents plus the memory of other processes.
func (g *GPU) Committed() units.Bytes {
	sum := g.OtherProcesses
	for i := range g.Residents {
		sum += g.Residents[i].Taken()
	}
	return sum
}

// Free returns the memory that can still be allocated beside the headroom; it may be
// negative.
func (g *GPU) Free(headroom units.Bytes) units.Bytes { return g.Capacity - headroom - g.Committed() }

// Idle reports whether no task is placed on the GPU.
func (g *GPU) Idle() bool { return len(g.Residents) == 0 }

// ExclusivelyUsed reports whether a task has the GPU alone.
func (g *GPU) ExclusivelyUsed() bool { return len(g.Residents) > 0 && g.Residents[0].Exclusive }

// Warming reports whether a resident that warms up closes the GPU.
func (g *GPU) Warming(now units.Instant) bool { return g.warmUntil > now }

// Available returns the memory that can still be allocated beside the headroom, as the
// option Booking counts it; it may be negative. It uses the sum that Settle stored.
func (g *GPU) Available(opt *Options) units.Bytes {
	if opt.Booking == BookSamples {
		return g.Capacity - opt.Headroom - max(g.Used, g.OtherProcesses)
	}
	return g.Capacity - opt.Headroom - g.committed
}

// Pos returns the position of the GPU in the ledger's list.
func (g *GPU) Pos() int { return g.pos }

// SetPos sets the position of the GPU in the ledger's list.
func (g *GPU) SetPos(i int) { g.pos = i }

// Version counts the changes of everything that a task may find on the GPU.
func (g *GPU) Version() int { return g.version }

// Turnover counts the changes of the tasks on the GPU and of their expected loads.
func (g *GPU) Turnover() int { return g.turnover }

// WarmUntil returns the instant until which residents that warm up close the GPU.
func (g *GPU) WarmUntil() units.Instant { return g.warmUntil }

// Observer returns the observer of the GPU, or nil.
func (g *GPU) Observer() GPUObserver { return g.observer }

// SetObserver replaces the observer of the GPU; nil removes it.
func (g *GPU) SetObserver(o GPUObserver) { g.observer = o }

// CheckSums returns an error if the stored sums differ from the residents.
func (g *GPU) CheckSums() error {
	want := g.Clone()
	want.Settle()
	if g.committed != want.committed || g.warmUntil != want.warmUntil {
		return fmt.Errorf("GPU %d: %s committed until %d, kept as %s until %d", g.Index, want.committed, want.warmUntil, g.committed, g.warmUntil)
	}
	return nil
}

// Settle updates the sums after every change of the residents or of OtherProcesses.
func (g *GPU) Settle() {
	g.Changed()
	g.committed, g.warmUntil = g.Committed(), 0
	for i := range g.Residents {
		g.warmUntil = max(g.warmUntil, g.Residents[i].WarmUntil)
	}
}

// Resident returns the entry of a task on the GPU, or nil.
func (g *GPU) Resident(id TaskID) *Resident {
	for i := range g.Residents {
		if g.Residents[i].Task == id {
			return &g.Residents[i]
		}
	}
	return nil
}

// Add places a task on the GPU.
func (g *GPU) Add(r Resident, headroom units.Bytes) {
	g.Residents = append(g.Residents, r)
	if g.Reserved += r.Grant; r.Grant > 0 { // else the earlier allocations stay within the earlier limit
		g.Bookable = g.Capacity - headroom
	}
	g.Settle()
}

// Remove removes a task from the GPU, if it is there.
func (g *GPU) Remove(id TaskID) {
	for i, r := range g.Residents {
		if r.Task == id {
			g.Reserved -= r.Grant
			g.Residents = append(g.Residents[:i], g.Residents[i+1:]...)
			g.Settle()
			return
		}
	}
}

// Clone returns a copy without its observer and its counts of changes.
func (g *GPU) Clone() *GPU {
	c := *g
	c.Residents, c.version, c.turnover, c.observer = append([]Resident(nil), g.Residents...), 0, 0, nil
	c.Overran = append([]Overran(nil), g.Overran...)
	c.Breaker = g.Breaker.Clone()
	return &c
}

// GPUObserver is called at each change of a GPU.
type GPUObserver interface{ GPUChanged(g *GPU) }

// Changed records that a GPU has changed. Call it after a change of anything on which it
// depends whether a task can be placed here; Settle and InvalidateForecast do. TestProperties finds a missing call.
func (g *GPU) Changed() {
	g.version++
	if g.observer != nil {
		g.observer.GPUChanged(g)
	}
}

// InvalidateForecast drops the forecast of a GPU after a change of its tasks.
func (g *GPU) InvalidateForecast() {
	g.Changed()
	g.turnover++
}

// Cordon records who has stopped launches, since when, and why.
type Cordon struct {
	By    string        `json:"by,omitempty"`
	Why   string        `json:"why,omitempty"`
	Since units.Instant `json:"since"`
	// Move moves the tasks of a GPU to others without ending them, when these have room
	// and where it is possible.
	Move bool `json:"move,omitempty"`
	// Until is the instant at which it expires, or 0 if somebody must end it.
	Until units.Instant `json:"until,omitempty"`
}

// Expired reports whether a cordon has expired.
func (c *Cordon) Expired(now units.Instant) bool { return c != nil && c.Until > 0 && c.Until <= now }

// GPUFault is a fault that lasts until the GPU is reset, for example a fatal error that
// its driver has reported. Neither later samples nor restarts end it, because a driver
// reports such an error only once.
type GPUFault struct {
	Fault string        `json:"fault"` // in the words of the component that found it
	Since units.Instant `json:"since"`
	// Boot is the machine's boot at that time, as GPUInfo.Boot, or empty if not known.
	Boot string `json:"boot,omitempty"`
	// FromDriver: the driver has asked for a reset, so it also reports when a reset has
	// happened.
	FromDriver bool `json:"told,omitempty"`
}

// FaultReason returns the reason why a GPU that is present gets no tasks, as reported by the
// component that found the fault, or "" if there is no fault.
func (g *GPU) FaultReason() string {
	if g.Persistent == nil {
		return g.Fault
	}
	return cmp.Or(g.Fault, g.Persistent.Fault)
}

// Overran records that a task exceeded its grant on a GPU while others lacked memory that
// they had been granted.
type Overran struct {
	Task  TaskID        `json:"task"`
	Used  units.Bytes   `json:"used"`
	Grant units.Bytes   `json:"grant"`
	At    units.Instant `json:"at"`
}

// OverrunWindow is the time for which a neighbour's overuse explains a GPU OOM: samples are
// a second apart, and the same lack of memory may end both tasks, the neighbour first.
const OverrunWindow = 10 * time.Second

// OverranBeside returns the last neighbour that exceeded its grant during an attempt of a
// task, within OverrunWindow, or nil.
func (g *GPU) OverranBeside(task TaskID, a *Attempt, now units.Instant) *Overran {
	for i := len(g.Overran) - 1; i >= 0; i-- {
		o := &g.Overran[i]
		if o.Task != task && o.At >= a.Launched && now.Sub(o.At) <= OverrunWindow {
			return o
		}
	}
	return nil
}

// Utilization returns the sum of the expected GPU utilizations of the residents.
func (g *GPU) Utilization() float64 {
	sum := 0.0
	for i := range g.Residents {
		sum += g.Residents[i].Load.Busy()
	}
	return sum
}

// CompareBools orders false before true.
func CompareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// Vacate removes a task from a copy of a GPU, as the GPU will be when it has left.
func (g *GPU) Vacate(v *Task) {
	g.RemoveTask(v.ID)
	if v.Phase != Stopping && v.VacatesFor(Reason{Code: ReasonMadeWay}) {
		g.Residue = append(slices.Clone(g.Residue), SuspendedResidue{v.ID, AssumedResidue})
		g.OtherProcesses = (g.OtherProcesses + AssumedResidue).Clamp()
		g.Settle()
	}
}

// SettleTime is the time from a change on a GPU until the samples count: the
// monitor's window of 30 s, and as much for a task to begin its work.
const SettleTime = time.Minute

// RemoveTask removes a task from a copy of a GPU. It assumes that the tasks there contribute
// equally to the monitor's scores.
func (g *GPU) RemoveTask(id TaskID) {
	n := len(g.Residents)
	if r := g.Resident(id); r != nil {
		g.Used = max(g.OtherProcesses, g.Used-r.Used)
	}
	g.Remove(id)
	g.InvalidateForecast()
	if left := len(g.Residents); left < n {
		part := float64(left) / float64(n)
		g.SMACT, g.SMOCC, g.DRAMA = g.SMACT*part, g.SMOCC*part, g.DRAMA*part
	}
}

// SamplesValidFrom returns the instant from which samples show only the present tasks of a GPU,
// all of one kind of samples.
func (g *GPU) SamplesValidFrom() units.Instant { return max(g.ChangedAt, g.ReadSince).Add(SettleTime) }

// ExpectedActivity returns the activity that samples are expected to show of the residents of a GPU,
// without one of them.
func (g *GPU) ExpectedActivity(without int) float64 {
	sum, gap := 0.0, 1.0
	for i := range g.Residents {
		if r := &g.Residents[i]; i != without {
			sum += r.Load.SMACT * r.Speed
			gap *= r.Load.Gap(r.Speed)
		}
	}
	if g.Coarse {
		return 1 - gap
	}
	return min(sum, 1)
}

// HasVagueBound reports whether measured speeds may improve the estimated activity of the task
// that came last.
func (g *GPU) HasVagueBound() bool {
	n := len(g.Residents)
	return g.Coarse && n > 1 && g.Residents[n-1].Bound && g.Residents[n-1].Doubt >= CoarseDoubt
}

// CoarseDoubt is the least standard deviation of an SM activity found in coarse samples,
// unless measured speeds show more.
const CoarseDoubt = 0.2

// ResidueOf returns the memory that a suspended task still holds on a GPU.
func (g *GPU) ResidueOf(t *Task) units.Bytes {
	if t.Phase != Suspended {
		return 0
	}
	for _, b := range g.Residue {
		if b.Task == t.ID {
			return b.Used
		}
	}
	return 0
}

// ForeignTo returns the memory on a GPU that is neither allocated nor the task's own.
func (g *GPU) ForeignTo(t *Task) units.Bytes { return g.OtherProcesses - g.ResidueOf(t) }

// ForeignMemory returns the memory of processes on a GPU that are not carma's tasks.
func (g *GPU) ForeignMemory() units.Bytes {
	sum := g.OtherProcesses
	for _, b := range g.Residue {
		sum -= b.Used
	}
	return sum
}

// IdleActivity is the SM activity up to which a GPU counts as idle: a residue of the
// rounding of samples.
const IdleActivity = 0.02

// Fraction limits a monitor's figure to 0 to 1; NaN is 0.
func Fraction(f float64) float64 {
	if !(f > 0) {
		return 0
	}
	return min(f, 1)
}
