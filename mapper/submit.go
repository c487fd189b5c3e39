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
	s.queue.AddToGroup(t)
	s.addDependencies(t)
}

func (s *State) estimated(ev model.Estimated) {
	t := s.TaskByID(ev.Task)
	if t == nil || t.Phase != model.Estimating {
		return
	}
	t.Estimate, t.Expected = ev.Estimate, ev.Expected
	s.learner.SetFirstGrant(t)
	if no := s.explainer.Impossible(t.Request, t.Estimate); no != nil && (len(s.MostBookable()) > 0 || t.NoGPU) && s.Recorded().MayEnd(t.ID) {
		s.finish(t, model.Failed, 0, no.Reason)
		return
	}
	if !t.Ready() {
		t.Phase = model.Held
		return
	}
	s.admit(t)
}
