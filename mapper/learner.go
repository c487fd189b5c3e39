package mapper

import (
	"carma/internal/units"
	"carma/mapper/fairshare"
	"carma/mapper/ledger"
	"carma/mapper/model"
	"carma/mapper/place"
	"carma/mapper/predict"
	"carma/mapper/preempt"
	"carma/mapper/queue"
)

// enterKind adds a task's kind to the history.
func (ln *learner) enterKind(t *model.Task) {
	if dropped := ln.predictor.AddKind(t); dropped != "" {
		ln.reestimate(dropped)
		for _, w := range ln.WaitingOf(dropped, nil) {
			ln.queue.UpdateBacklog(w)
		}
	}
}

// learn learns from a successful attempt whose start was seen.
func (ln *learner) learn(t *model.Task, a *model.Attempt) {
	if t.Kind == "" || a.Started == 0 {
		return
	}
	ln.enterKind(t)
	if first := ln.predictor.RecordRun(t, a); first {
		ln.propagateMemory(t)
	}
	concerns, changed := ln.predictor.Retime(t)
	switch {
	case !changed:
	case concerns == nil:
		ln.reestimate(t.Kind)
		if ln.Options().ShortestFirst() {
			ln.queue.ResortKind(t.Kind)
		}
	case ln.Options().ShortestFirst():
		ln.queue.Resort(concerns)
	}
}

// learnFloor stores the least memory that an unsuccessful attempt needed.
func (ln *learner) learnFloor(t *model.Task, least units.Bytes) {
	if t.Kind == "" || least <= 0 || !ln.predictor.HasRoom(t.Kind) {
		return
	}
	ln.enterKind(t)
	ln.predictor.RecordFloor(t, least)
}

// reestimate drops the cached run times of the tasks of a kind.
func (ln *learner) reestimate(kind string) {
	for _, t := range ln.OfKind(kind) {
		ln.predictor.Forget(t)
		ln.placer.LoadChanged(t)
	}
}

// learner observes what tasks do, and updates the predictor, and the tasks that wait or
// run, accordingly.
type learner struct {
	*ledger.Ledger
	users     *fairshare.Users
	predictor *predict.Predictor
	queue     *queue.Queue
	placer    *place.Placer
	preempter *preempt.Preempter
}

// learnLoads sets the load of tasks whose activity is a guess.
func (ln *learner) learnLoads() {
	for _, g := range ln.GPUList() {
		known, attributed := ln.predictor.LearnLoads(g)
		if ln.propagateLoads(known); attributed {
			ln.preempter.EvictSlowing(g)
		}
	}
}

// siblings calls fn for each waiting task of the same kind and number of GPUs as t that
// has not been launched yet.
func (ln *learner) siblings(t *model.Task, fn func(*model.Task)) {
	if !ln.Options().Learn || t.Kind == "" {
		return
	}
	for _, w := range ln.WaitingOf(t.Kind, nil) {
		if w.GPUs == t.GPUs && len(w.Attempts) == 0 {
			fn(w)
		}
	}
}

// propagateLoads copies the observed activity of tasks to their siblings.
func (ln *learner) propagateLoads(of []*model.Task) {
	for _, t := range of {
		ln.propagateLoad(t)
	}
}

// propagateLoad copies the observed activity of a task to its siblings: often many are
// submitted at once, and wait.
func (ln *learner) propagateLoad(t *model.Task) {
	ln.siblings(t, func(w *model.Task) {
		if len(w.Expected.Loads) == 0 {
			w.Expected.Loads, w.Doubt, w.Expected.Source = t.Expected.Loads, t.Doubt, model.SourceSeen
			ln.placer.LoadChanged(w)
			if !ln.placer.Predicts() { // a gate may use it, and has no cache key that changes with it
				ln.placer.Retry(w)
			}
			ln.queue.UpdateBacklog(w)
		}
	})
}

// propagateMemory updates the learners among the siblings of a successful task with the
// memory it needed. Siblings with declared or estimated memory keep that until they are
// submitted again.
func (ln *learner) propagateMemory(t *model.Task) {
	ln.siblings(t, func(w *model.Task) {
		if w.Learner {
			ln.appraise(w)
			ln.placer.Retry(w)
			ln.queue.UpdateBacklog(w)
		}
	})
}

// appraise computes the first grant from the estimate and from earlier runs.
func (ln *learner) appraise(t *model.Task) {
	ln.predictor.ApplyHostHistory(t)
	if t.GPUs == 0 {
		t.NextGrant, t.Learner, t.NextExclusive = 0, false, false
		return
	}
	ln.predictor.ApplyHistory(t)
	t.NextGrant = t.Estimate.Memory.Clamp()
	t.Learner = ln.Learns(t)
	t.NextExclusive = t.Exclusive || t.Estimate.WholeGPU && !t.Learner
	if t.Learner {
		t.NextGrant = ln.LearnerNeed(t.GPUs)
	}
	if most := ln.MostBookable().Of(t.GPUs); t.Estimate.ExceedsByMargin(most) {
		t.NextGrant, t.NextExclusive = t.Estimate.Point.Clamp(), true
	}
}

// throughputReported learns from the speeds of tasks how they slow each other down.
func (ln *learner) throughputReported(ev model.ThroughputReported) {
	for _, p := range ev.Tasks {
		t := ln.TaskByID(p.Task)
		if t == nil || t.Current() == nil || t.Current().N != p.Attempt || t.Phase != model.Running || !ln.predictor.RecordRate(t, p) {
			continue
		}
		if g, known := ln.predictor.Compare(t, p); g != nil {
			ln.propagateLoads(known)
			ln.preempter.EvictSlowing(g)
		}
		for i, grant := range t.Current().Grants {
			known, sought := ln.predictor.StepTimeReported(t, i)
			if ln.propagateLoads(known); sought {
				ln.preempter.EvictSlowing(ln.GPU(grant.GPU))
			}
		}
		ln.predictor.RecordShareDone(t)
	}
}
