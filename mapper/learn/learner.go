package learn

import (
	"carma/internal/units"
	"carma/mapper/ledger"
	"carma/mapper/model"
	"carma/mapper/place"
	"carma/mapper/predict"
	"carma/mapper/preempt"
	"carma/mapper/queue"
)

// Learner updates the predictor, and the tasks that wait or run, with what samples and
// output tell.
type Learner struct {
	*ledger.Ledger
	predictor *predict.Predictor
	queue     *queue.Queue
	placer    *place.Placer
	preempter *preempt.Preempter
}

// New returns a learner over other parts. It holds nothing else.
func New(l *ledger.Ledger, pr *predict.Predictor, q *queue.Queue, pl *place.Placer, pre *preempt.Preempter) *Learner {
	return &Learner{l, pr, q, pl, pre}
}

// enterKind adds a task's kind to the history.
func (ln *Learner) enterKind(t *model.Task) {
	if dropped := ln.predictor.AddKind(t); dropped != "" {
		ln.reestimate(dropped)
		for _, w := range ln.WaitingOf(dropped, nil) {
			ln.queue.UpdateBacklog(w)
		}
	}
}

// LearnRun learns from a successful attempt whose start was seen.
func (ln *Learner) LearnRun(t *model.Task, a *model.Attempt) {
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

// LearnFloor stores the least memory that an unsuccessful attempt needed.
func (ln *Learner) LearnFloor(t *model.Task, least units.Bytes) {
	if t.Kind == "" || least <= 0 || !ln.predictor.HasRoom(t.Kind) {
		return
	}
	ln.enterKind(t)
	ln.predictor.RecordFloor(t, least)
}

// reestimate drops the cached run times of the tasks of a kind.
func (ln *Learner) reestimate(kind string) {
	for _, t := range ln.OfKind(kind) {
		ln.predictor.Forget(t)
		ln.placer.LoadChanged(t)
	}
}

// EndAttempt records when and how an attempt ended. An attempt that ended before its
// limit was not stopped by the limit.
func (ln *Learner) EndAttempt(t *model.Task, a *model.Attempt, ev model.Exited) {
	a.Ended, a.Class, a.Code, a.Message = ln.Now(), ev.Class, ev.Code, ev.Message
	if ev.Finished > 0 {
		a.Ended = max(min(ev.Finished, ln.Now()), a.Started, a.Launched)
		if t.TimedOut && t.StopReason.Code == model.ReasonTimeLimit && a.Started > 0 && a.Ended <= ln.LimitEnds(t) {
			t.TimedOut, t.Phase = false, model.Running // it ended in time, unobserved
		}
		if t.SlotUsed && a.Ended <= a.SlotStart().Add(ln.SlotOf(t)) {
			t.SlotUsed, t.Phase = false, model.Running
		}
	}
	ln.predictor.UpdateWork(t)
	if a.Started > 0 { // no progress after its end
		t.Done = min(t.Done, max(0, a.Ended.Sub(a.Started)-a.SuspendedTime).Seconds())
	}
}

// LearnLoads sets the load of tasks whose activity is a guess.
func (ln *Learner) LearnLoads() {
	for _, g := range ln.GPUList() {
		known, attributed := ln.predictor.LearnLoads(g)
		if ln.propagateLoads(known); attributed {
			ln.preempter.EvictSlowing(g)
		}
	}
}

// ThroughputReported learns from the speeds of tasks how they slow each other down.
func (ln *Learner) ThroughputReported(ev model.ThroughputReported) {
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
