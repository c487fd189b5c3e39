package predict

import (
	"time"

	"carma/internal/units"
	"carma/mapper/ledger"
	"carma/mapper/model"
)

// NoteActivity marks the learners on a GPU as active if the samples show activity.
func (gr *growth) NoteActivity(g *model.GPU) {
	for i := range g.Residents {
		r := &g.Residents[i]
		if !r.Learning || r.ActiveAt != 0 {
			continue
		}
		if g.SMACT >= g.ExpectedActivity(i)+ActiveLeast {
			gr.active(r)
		}
	}
}

// active marks a learner as active.
func (gr *growth) active(r *model.Resident) {
	if r.Learning && r.ActiveAt == 0 {
		r.ActiveAt, r.ShrinkAt = gr.Now(), 0
		gr.ScheduleShrink(r)
		gr.SetTimer(gr.Now().Add(model.SettleTime), ledger.Timer{})
	}
}

// loading reports whether a learner on a GPU has not been active for long enough for
// samples to show its load.
func (gr *growth) loading(g *model.GPU) bool {
	for i := range g.Residents {
		r := &g.Residents[i]
		from := r.ActiveAt.Add(model.SettleTime)
		if r.ActiveAt == 0 {
			from = gr.TaskByID(r.Task).Current().Started.Add(ActivePatience)
		}
		if r.Learning && r.Unseen && gr.Now() < from {
			return true
		}
	}
	return false
}

// growth predicts the memory that running tasks will need. It owns the record of how much
// learners grew after their memory seemed to be known.
type growth struct {
	*ledger.Ledger
	seen MemoryGrowth
}

// MemoryGrowth records the growth of learners' memory after it seemed to be known.
type MemoryGrowth struct {
	// Settled counts the attempts whose memory seemed to be known, Grew the attempts that
	// later needed more than the margin. Sum is the sum of their growth, as a share of
	// their memory before.
	Settled int     `json:"settled,omitempty"`
	Grew    int     `json:"grew,omitempty"`
	Sum     float64 `json:"sum,omitempty"`
}

// If at least two learners have grown, and more than one in grewLeast, the margin is
// their mean growth.
const grewLeast = 12

// Margin returns the factor on the peak of a learner that is granted.
func (h MemoryGrowth) Margin() float64 {
	if h.Grew >= 2 && h.Grew*grewLeast > h.Settled {
		return max(SettledFactor, 1+h.Sum/float64(h.Grew))
	}
	return SettledFactor
}

// LearnGrowth records the memory growth of a learner whose attempt has ended.
func (gr *growth) LearnGrowth(t *model.Task, a *model.Attempt) {
	if !t.Learner {
		return
	}
	for _, grant := range a.Grants {
		r := gr.GPU(grant.GPU).Resident(t.ID)
		if r.SettledAt == 0 {
			continue
		}
		gr.seen.Settled++
		if more := float64(r.Peak)/float64(r.SettledAt) - 1; more > SettledFactor-1 {
			gr.seen.Grew++
			gr.seen.Sum += more
		}
	}
}

// settlesAt returns the instant at which the memory of a learner counts as known if it does not
// grow until then.
func (gr *growth) settlesAt(r *model.Resident) units.Instant {
	if r.ActiveAt == 0 {
		return r.GrewAt.Add(ActivePatience)
	}
	return max(r.GrewAt, r.ActiveAt).Add(gr.Options().LearnMemory)
}

// A learner is a task whose memory is not known. It is granted all free memory of its
// GPUs. Once its memory has not grown for a while, the grant is cut to its use plus a
// margin, and others may join it. Once it has succeeded, its peak is known for other
// tasks of its kind.
const (
	// The margin of a learner's grant above its peak. It is needed because a second epoch or an
	// evaluation takes more memory than the first steps.
	SettledFactor = 1.1
	SettledExtra  = 512 * units.MiB
	// ActiveLeast is the SM activity, in addition to the expected activity of its neighbours, from
	// which a learner is assumed to have begun to train. While a learner loads data, constant
	// memory proves nothing. If there is no activity for ActivePatience, the learner is assumed to
	// leave the GPU idle.
	ActiveLeast    = 0.03
	ActivePatience = 10 * time.Minute
)

// A grant is cut to the highest observed memory times shrinkFactor, or plus shrinkLeast if that
// is more, because samples miss short spikes.
const (
	shrinkFactor = 1.05
	shrinkLeast  = 256 * units.MiB
)

// ShrunkGrant returns the memory to which a resident's grant would be cut.
func (gr *growth) ShrunkGrant(r *model.Resident) units.Bytes {
	if gr.TaskByID(r.Task).Learner {
		return r.Peak.Scale(gr.seen.Margin()) + SettledExtra
	}
	return max(r.Peak.Scale(shrinkFactor), r.Peak+shrinkLeast)
}

// ShrinkTime returns the instant at which a resident's grant may be cut if its memory does
// not grow.
func (gr *growth) ShrinkTime(r *model.Resident) units.Instant {
	if r.Learning {
		return gr.settlesAt(r)
	}
	return r.GrewAt.Add(gr.Options().Shrink)
}

// CanShrink reports whether a resident's grant can be cut. It cannot before its memory was
// sampled.
func (gr *growth) CanShrink(r *model.Resident) bool {
	after := gr.Options().Shrink
	if r.Learning {
		after = gr.Options().LearnMemory
	}
	return after > 0 && r.Peak > 0 && !r.Exclusive && gr.ShrunkGrant(r) < r.Grant
}

// ScheduleShrink schedules the check of a resident's grant.
func (gr *growth) ScheduleShrink(r *model.Resident) {
	if r.ShrinkAt != 0 || !gr.CanShrink(r) {
		return
	}
	r.ShrinkAt = gr.ShrinkTime(r)
	gr.CheckGrantsBy(r.ShrinkAt)
	gr.SetTimer(r.ShrinkAt, ledger.Timer{})
}
