package lifecycle

import "carma/mapper/model"

// Submitted adds a new task, which waits for its estimate.
func (lc *Lifecycle) Submitted(ev model.TaskSubmitted) {
	if ev.ID <= lc.LastID() {
		return
	}
	lc.UseID(ev.ID)
	t := &model.Task{Request: ev.Request, Phase: model.Estimating, Submitted: lc.Now()}
	t.Normalize()
	lc.AddTask(t)
	lc.queue.AddToGroup(t)
	lc.addDependencies(t)
}

// endImpossible ends a task that could never run on the present GPUs and machines, and
// reports whether it did.
func (lc *Lifecycle) endImpossible(t *model.Task) bool {
	no := lc.explainer.Impossible(t.Request, t.Estimate)
	return no != nil && (len(lc.MostBookable()) > 0 || t.NoGPU) && lc.endUnlaunched(t, model.Failed, no.Reason)
}

// Estimated stores the estimate of a new task and admits it, unless it is impossible or
// something holds it.
func (lc *Lifecycle) Estimated(ev model.Estimated) {
	t := lc.TaskByID(ev.Task)
	if t == nil || t.Phase != model.Estimating {
		return
	}
	t.Estimate, t.Expected = ev.Estimate, ev.Expected
	lc.learner.SetFirstGrant(t)
	if lc.endImpossible(t) {
		return
	}
	if !t.Ready() {
		t.Phase = model.Held
		return
	}
	lc.admit(t)
}
