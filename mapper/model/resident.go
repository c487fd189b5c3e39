package model

import (
	"carma/internal/units"
	"carma/mapper/interference"
)

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
	Believed   Posterior     `json:"believed,omitzero"`
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

// Taken returns the memory that counts as taken by a resident: its grant, or its use if
// that is more.
func (r *Resident) Taken() units.Bytes { return max(r.Grant, r.Used) }

// Posterior is the estimated SM activity of a task on a GPU: a mean and a standard
// deviation. Sd is 0 if only the task's prior is known.
type Posterior struct {
	Mean float64 `json:"mean,omitempty"`
	Sd   float64 `json:"sd,omitempty"`
}

// before returns the estimate of a resident's activity from before its GPU's tasks last
// changed. Later samples and speeds are combined with that, so that nothing counts twice.
func (r *Resident) PriorEstimate(g *GPU) Posterior {
	if r.BelievedAt != g.ChangedAt {
		r.Believed, r.BelievedAt = Posterior{r.Load.SMACT, r.Doubt}, g.ChangedAt
	}
	return r.Believed
}

// observedLoad is the activity of one task in samples, summed over time.
type observedLoad struct {
	Seconds float64       `json:"seconds,omitempty"`
	SMACT   float64       `json:"smact,omitempty"`
	SMOCC   float64       `json:"smocc,omitempty"`
	DRAMA   float64       `json:"drama,omitempty"`
	Until   units.Instant `json:"until,omitempty"`
}

// Add adds the activity that a sample shows between two instants.
func (v *observedLoad) Add(g *GPU, from, to units.Instant) {
	if to <= from {
		return
	}
	dt := to.Sub(from).Seconds()
	v.Seconds += dt
	v.SMACT += g.SMACT * dt
	v.SMOCC += g.SMOCC * dt
	v.DRAMA += g.DRAMA * dt
	v.Until = to
}
