package preempt

import (
	"slices"

	"carma/mapper/model"
)

// Pin restricts a task to some GPUs. A task that runs on others is displaced.
func (pre *Preempter) Pin(ev model.Pinned) {
	t := pre.TaskByID(ev.Task)
	if t == nil || t.GPUs == 0 {
		return
	}
	usable := slices.Compact(slices.Sorted(slices.Values(ev.GPUs)))
	if t.GPUs > 1 {
		usable = slices.DeleteFunc(usable, func(id model.GPUID) bool { g := pre.GPU(id); return g != nil && g.MIG })
	}
	if len(ev.GPUs) > 0 && len(usable) < t.GPUs {
		return
	}
	t.Pinned = usable
	pre.placer.Retry(t)
	pre.MarkDirty()
	if t.Phase == model.Launching || t.Phase == model.Running {
		pre.evictPinned(t, ev.By)
	}
}

// evictPinned suspends or stops a task that runs on a GPU to which it is not pinned.
func (pre *Preempter) evictPinned(t *model.Task, by string) {
	if !slices.ContainsFunc(t.Current().Grants, func(g model.Grant) bool { return !t.MayUse(g.GPU) }) {
		return
	}
	why := model.Reason{Code: model.ReasonMoved, Name: by}
	if pre.canSuspend(t, why.Code) && pre.goesElsewhere(t, func(g *model.GPU) bool { return t.MayUse(g.ID) }) && pre.displace(displacement{t, why, suspendOnly}) {
		return
	}
	if pre.Stop(t, why) {
		t.Recall = &model.PendingRequeue{By: by}
	}
}
