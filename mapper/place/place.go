package place

import (
	"slices"

	"carma/mapper/ledger"
	"carma/mapper/model"
)

// Place picks the GPUs for a task: filter, rank, pick. It returns all of them, on
// one machine, or nil. A task without a GPU gets an empty list if a machine has room.
func (pl *Placer) Place(c *Cycle, t *model.Task) []*model.GPU {
	if t.GPUs == 0 {
		if h, _ := pl.reserve.HostFor(t); h != nil {
			return []*model.GPU{}
		}
		return nil
	}
	if !c.fit.possible(t, pl.RunsAlone(t)) || pl.hopeless(c, t) || len(pl.HostList()) > 0 && pl.reserve.HostShort(t).Code != "" {
		return nil
	}
	fitting, all := pl.reserve.WithHostRoom(t, pl.candidates(t))
	gpus := pl.Choose(t, ledger.OfMachinesWith(t.GPUs, fitting))
	if gpus == nil && all {
		tried := pl.tried(t)
		tried.at, tried.head = pl.clock, pl.reserve.Head()
		pl.cacheRejection(t)
		c.failed = append(c.failed, pl.failure(t))
	}
	return gpus
}

// candidates returns the GPUs that may take a task, among the GPUs that have changed
// since it was last rejected. For a task on several GPUs it considers all machines where
// one has changed, so the other GPUs there that would have taken a part of it count too.
func (pl *Placer) candidates(t *model.Task) []*model.GPU {
	since, reopened := pl.rejectedByAll(t)
	if pl.reserve.Any() {
		since = 0 // with time, a reservation comes closer, or the expected run time changes
	}
	changed := func(g *model.GPU) bool {
		return cacheOf(g).changedAt > since || since == 0 || slices.Contains(reopened, g.ID)
	}
	all := pl.GPUList()
	if l := &pl.dirty; l.valid && len(reopened) == 0 && since >= l.since {
		all = l.recent
	}
	if t.GPUs > 1 {
		if since == 0 {
			pl.tried(t).open = nil
		}
		return pl.severalOf(t, all, changed)
	}
	fitting := pl.fitting[:0]
	for _, g := range all {
		if changed(g) && pl.Reject(t, g) == "" {
			fitting = append(fitting, g)
		}
	}
	pl.fitting = fitting
	return fitting
}

// severalOf returns the candidates for a task on several GPUs; all holds the GPUs that
// may have changed. It stores which GPUs would take a part of the task.
func (pl *Placer) severalOf(t *model.Task, all []*model.GPU, changed func(*model.GPU) bool) []*model.GPU {
	fitting, open := pl.fitting[:0], pl.openGPUs[:0]
	tried := pl.tried(t)
	before := tried.open
	for len(all) > 0 {
		if !changed(all[0]) {
			all = all[1:]
			continue
		}
		there := pl.MachineOf(all[0])
		for len(all) > 0 && all[0].Node == there[0].Node {
			all = all[1:]
		}
		for len(before) > 0 && before[0].Pos() < there[0].Pos() { // on machines where nothing has changed
			open = append(open, before[0])
			before = before[1:]
		}
		for _, g := range there {
			was := len(before) > 0 && before[0] == g
			if was {
				before = before[1:]
			}
			if (was || changed(g)) && pl.Reject(t, g) == "" {
				fitting = append(fitting, g)
			}
		}
		open = append(open, fitting[len(fitting)-countOn(fitting, there[0].Node):]...)
	}
	open = append(open, before...)
	pl.fitting, pl.openGPUs = fitting, open
	tried.open = append(tried.open[:0], open...)
	return fitting
}

// countOn returns how many GPUs at the end of a list in ledger order are on a machine.
func countOn(gpus []*model.GPU, node string) (n int) {
	for n < len(gpus) && gpus[len(gpus)-1-n].Node == node {
		n++
	}
	return n
}

// Choose picks among GPUs that may take a task, or returns nil.
func (pl *Placer) Choose(t *model.Task, fitting []*model.GPU) []*model.GPU {
	switch {
	case len(fitting) == 0:
		return nil
	case pl.Predicts():
		return pl.policy.Pick(policyView{pl}, t, fitting)
	}
	pl.rank(t, fitting)
	return ledger.Closest(t, fitting)
}

// failure is a task that did not fit in a scheduling cycle, with its first candidate
// number.
type failure struct {
	t     *model.Task
	alone bool
	ask   int
}

func (pl *Placer) failure(t *model.Task) failure {
	f := failure{t: t, alone: pl.RunsAlone(t)}
	if pl.Predicts() {
		f.ask = pl.candidatesOf(t)[0]
	}
	return f
}

// hopeless reports whether a task that needs no more than t did not fit in this cycle.
// Room only shrinks during a cycle, so t does not fit either. If the policy has a filter,
// only tasks with equal loads count. A task with nominated GPUs may go where others may
// not.
func (pl *Placer) hopeless(c *Cycle, t *model.Task) bool {
	if t.Phase == model.Suspended || pl.policy.Filter != nil && !pl.Predicts() || pl.reserve.Any() || pl.IsNominated(t) || pl.Options().FillHeld && pl.reserve.Head().Task != 0 {
		return false
	}
	mine := pl.failure(t)
	for i := range c.failed {
		f := &c.failed[i]
		if f.t.Phase == model.Suspended || len(f.t.Pinned) > 0 || f.ask != mine.ask || f.t.GPUs > t.GPUs || f.t.NextGrant > t.NextGrant || f.t.Estimate.Share > t.Estimate.Share || !mine.alone && f.alone {
			continue
		}
		if pl.policy.Filter == nil || f.t.GPUs == t.GPUs && mine.alone == f.alone && slices.Equal(pl.candidatesOf(f.t), pl.candidatesOf(t)) {
			return true
		}
	}
	return false
}
