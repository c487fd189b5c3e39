package mapper

import "carma/mapper/model"

func (s *State) submitted(ev model.TaskSubmitted) {
	if ev.ID <= s.LastID() {
		return
	}
	s.UseID(ev.ID)
	t := &model.Task{Request: ev.Request, Phase: model.Estimating, Submitted: s.Now()}
	t.Normalize()
	s.AddTask(t)
	s.queue.enrol(t)
	s.addDependencies(t)
}

func (s *State) estimated(ev model.Estimated) {
	t := s.TaskByID(ev.Task)
	if t == nil || t.Phase != model.Estimating {
		return
	}
	t.Estimate, t.Expected = ev.Estimate, ev.Expected
	s.learner.appraise(t)
	if no := s.impossible(t.Request, t.Estimate); no != nil && (len(s.MostBookable()) > 0 || t.NoGPU) && s.Recorded().MayEnd(t.ID) {
		s.finish(t, model.Failed, 0, no.Reason)
		return
	}
	if !t.Ready() {
		t.Phase = model.Held
		return
	}
	s.admit(t)
}

// appraise computes the first grant from the estimate and from earlier runs.
func (ln *learner) appraise(t *model.Task) {
	ln.predictor.recallHost(t)
	if t.GPUs == 0 {
		t.NextGrant, t.Learner, t.NextExclusive = 0, false, false
		return
	}
	ln.predictor.recall(t)
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
