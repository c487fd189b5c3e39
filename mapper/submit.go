package mapper

func (s *State) submitted(ev TaskSubmitted) {
	if ev.ID <= s.lastID {
		return
	}
	s.lastID = ev.ID
	t := &Task{Request: ev.Request, Phase: Estimating, Submitted: s.now}
	t.shape()
	s.addTask(t)
	s.queue.enrol(t)
	s.addDependencies(t)
}

// shape adjusts the request to what is possible.
func (r *Request) shape() {
	r.GPUs, r.HostMem, r.CPUs = max(r.GPUs, 1), r.HostMem.Clamp(), max(0, min(r.CPUs, mostCPUs))
	if r.HostReserve = r.HostReserve.Clamp(); r.HostMem > 0 {
		r.HostReserve = min(r.HostReserve, r.HostMem)
	}
	if r.NoGPU {
		r.GPUs, r.Exclusive = 0, false
	}
}

func (s *State) estimated(ev Estimated) {
	t := s.tasks[ev.Task]
	if t == nil || t.Phase != Estimating {
		return
	}
	t.Estimate, t.Expected = ev.Estimate, ev.Expected
	s.learner.appraise(t)
	if no := s.impossible(t.Request, t.Estimate); no != nil && (len(s.mostBookable()) > 0 || t.NoGPU) && s.recorded.mayEnd(t.ID) {
		s.finish(t, Failed, 0, no.Reason)
		return
	}
	if !t.ready() {
		t.Phase = Held
		return
	}
	s.admit(t)
}

// appraise computes the first grant from the estimate and from earlier runs.
func (ln *learner) appraise(t *Task) {
	ln.predictor.recallHost(t)
	if t.GPUs == 0 {
		t.NextGrant, t.Learner, t.NextExclusive = 0, false, false
		return
	}
	ln.predictor.recall(t)
	t.NextGrant = t.Estimate.Memory.Clamp()
	t.Learner = ln.learns(t)
	t.NextExclusive = t.Exclusive || t.Estimate.WholeGPU && !t.Learner
	if t.Learner {
		t.NextGrant = ln.learnerNeed(t.GPUs)
	}
	if most := ln.mostBookable().of(t.GPUs); t.Estimate.beyond(most) {
		t.NextGrant, t.NextExclusive = t.Estimate.Point.Clamp(), true
	}
}
