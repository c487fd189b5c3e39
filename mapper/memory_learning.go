package mapper

import (
	"time"

	"carma/internal/units"
	"carma/mapper/ledger"
	"carma/mapper/model"
)

// learnerGrant returns the grant of a learner on a GPU: all memory that is free there
// beside the margin, within its user's quota.
func (s *State) learnerGrant(t *model.Task, g *model.GPU) units.Bytes {
	grant := s.FreeMemory(g) - s.queue.withheld(t, g)
	if !g.Idle() {
		grant -= s.Ledger.Options().Margin
	}
	if left, bounded := s.users.MemoryLeft(t.User, t.Account); bounded {
		grant = min(grant, left/units.Bytes(t.GPUs))
	}
	return max(grant, t.NextGrant)
}

// busyWith marks the learners on a GPU as active if the samples show activity.
func (ln *learner) busyWith(g *model.GPU) {
	for i := range g.Residents {
		r := &g.Residents[i]
		if !r.Learning || r.ActiveAt != 0 {
			continue
		}
		if g.SMACT >= g.ExpectedActivity(i)+activeLeast {
			ln.active(r)
		}
	}
}

// active marks a learner as active.
func (ln *learner) active(r *model.Resident) {
	if r.Learning && r.ActiveAt == 0 {
		r.ActiveAt, r.ShrinkAt = ln.Now(), 0
		ln.predictor.shrinkLater(r)
		ln.SetTimer(ln.Now().Add(model.SettleTime), ledger.Timer{})
	}
}

// loading reports whether a learner on a GPU has not been active for long enough for
// samples to show its load.
func (pr *predictor) loading(g *model.GPU) bool {
	for i := range g.Residents {
		r := &g.Residents[i]
		from := r.ActiveAt.Add(model.SettleTime)
		if r.ActiveAt == 0 {
			from = pr.TaskByID(r.Task).Current().Started.Add(activePatience)
		}
		if r.Learning && r.Unseen && pr.Now() < from {
			return true
		}
	}
	return false
}

// memoryGrowth records the growth of learners' memory after it seemed to be known.
type memoryGrowth struct {
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

// margin returns the factor on the peak of a learner that is granted.
func (h memoryGrowth) margin() float64 {
	if h.Grew >= 2 && h.Grew*grewLeast > h.Settled {
		return max(settledFactor, 1+h.Sum/float64(h.Grew))
	}
	return settledFactor
}

// learnGrowth records the memory growth of a learner whose attempt has ended.
func (pr *predictor) learnGrowth(t *model.Task, a *model.Attempt) {
	if !t.Learner {
		return
	}
	for _, grant := range a.Grants {
		r := pr.GPU(grant.GPU).Resident(t.ID)
		if r.SettledAt == 0 {
			continue
		}
		pr.growth.Settled++
		if more := float64(r.Peak)/float64(r.SettledAt) - 1; more > settledFactor-1 {
			pr.growth.Grew++
			pr.growth.Sum += more
		}
	}
}

// reclaim cuts the margins of learners on a GPU for a task that needs more there: no task
// has asked for these margins.
func (s *State) reclaim(g *model.GPU, forTask model.TaskID, missing units.Bytes) {
	for i := range g.Residents {
		r := &g.Residents[i]
		t := s.TaskByID(r.Task)
		least := max(r.Peak.Scale(reclaimedFactor), r.Peak+reclaimedExtra)
		if missing <= 0 || r.Task == forTask || r.Exclusive || r.Learning || r.Peak == 0 || !t.Learner || least >= r.Grant {
			continue
		}
		cut := min(r.Grant-least, missing)
		missing -= cut
		s.users.Regrant(t, g, r.Grant-cut)
	}
}

// settlesAt returns the instant at which the memory of a learner counts as known if it
// does not grow.
func (pr *predictor) settlesAt(r *model.Resident) units.Instant {
	if r.ActiveAt == 0 {
		return r.GrewAt.Add(activePatience)
	}
	return max(r.GrewAt, r.ActiveAt).Add(pr.Options().LearnMemory)
}

// A learner is a task whose memory is not known. It is granted all free memory of its
// GPUs. Once its memory has not grown for a while, the grant is cut to its use plus a
// margin, and others may join it. Once it has succeeded, its peak is known for other
// tasks of its kind.
const (
	// The margin of a learner's grant above its peak: a second epoch or an
	// evaluation takes more than the first steps.
	settledFactor = 1.1
	settledExtra  = 512 * units.MiB
	// The rest of that margin if a neighbour needs the room.
	reclaimedFactor = 1.01
	reclaimedExtra  = 128 * units.MiB
	// activeLeast is the SM activity beyond the expected one of its neighbours that shows
	// that a learner has begun to train. While it loads data, steady memory says nothing.
	// If no activity is seen for activePatience, the learner is assumed to leave the GPU
	// idle.
	activeLeast    = 0.03
	activePatience = 10 * time.Minute
)
