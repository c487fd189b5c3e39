package mapper

import (
	"slices"
	"time"

	"carma/internal/units"
)

// A task can be suspended without ending it: its container is frozen, and its GPU memory
// is kept in host memory. It resumes on the same GPU, or on another of the same kind if
// the driver can move it.
//
//	running -> suspending -> suspended -> resuming -> running
//
// While it is suspending its memory stays allocated on the GPU, and the memory of a
// resuming task is allocated from the decision on. A suspended task holds nothing there.
// It waits before all tasks of its priority, or until somebody asks to resume it. In all
// three phases it may end, and may be stopped.

// CannotSuspend says why a task cannot be suspended now, or returns the zero Reason.
func (l *ledger) CannotSuspend(id TaskID) Reason {
	t := l.tasks[id]
	if t == nil || t.Phase != Running || t.GPUs == 0 {
		return Reason{Code: ReasonNotRunning}
	}
	if no := l.driverCannot(t); no.Code != "" && !t.Last().Leaves {
		return no
	}
	g := l.byID[t.Current().Grants[0].GPU]
	need := l.onGPUs(t)
	if h := l.host(g.Node); h != nil && h.Known && h.free()+l.lends(t) < need {
		return Reason{Code: ReasonHostFull, Need: need, Have: max(0, h.free()+l.lends(t))}
	}
	return Reason{}
}

// driverCannot says why the driver cannot suspend a running task, or returns the zero
// Reason.
func (l *ledger) driverCannot(t *Task) Reason {
	g := l.byID[t.Current().Grants[0].GPU]
	switch {
	case t.GPUs > 1:
		return Reason{Code: ReasonSeveralGPUs, Count: t.GPUs}
	case g.Suspend == SuspendNever || g.Missing:
		return Reason{Code: ReasonCannotSuspend, GPU: g.Index}
	case g.SuspendAlone && !t.NextExclusive:
		return Reason{Code: ReasonMPSClient, GPU: g.Index}
	}
	return Reason{}
}

// onGPUs returns the GPU memory that a running task uses: its observed memory, or its
// grant if that was not observed.
func (l *ledger) onGPUs(t *Task) (sum units.Bytes) {
	for _, grant := range t.Current().Grants {
		if r := l.byID[grant.GPU].resident(t.ID); r.Peak > 0 {
			sum += max(r.Used, r.Peak)
		} else {
			sum += r.Grant
		}
	}
	return sum
}

func (pre *preempter) suspendAsked(ev SuspendAsked) {
	t := pre.tasks[ev.Task]
	if pre.CannotSuspend(ev.Task).Code != "" {
		return
	}
	why := Reason{Code: ReasonSuspended, Name: ev.By, Text: ev.Why}
	pre.suspend(t, suspensionFor(why, pre.onGPUs(t)), why)
}

// suspend suspends a running task.
func (pre *preempter) suspend(t *Task, what Suspension, why Reason) {
	what.InPlace = t.vacatesFor(why)
	pre.suspendAs(t, what, why)
}

// suspendAs suspends a running task by the method in what.InPlace.
func (pre *preempter) suspendAs(t *Task, what Suspension, why Reason) {
	if !pre.recorded.maySuspend(t.ID, why) {
		return
	}
	what.Lent = pre.lends(t)
	pre.beginSuspension(t, what)
	pre.decide(Suspend{Task: t.ID, Attempt: t.Last().N, Host: what.Host, Lent: what.Lent, Reason: why, Leave: what.InPlace})
}

// beginSuspension begins a suspension: the task does no work from now on.
func (pre *preempter) beginSuspension(t *Task, what Suspension) {
	pre.predictor.progress(t)
	t.Phase, t.Suspension = Suspending, &what
	pre.bookSuspendedMemory(t)
	for _, grant := range t.Current().Grants {
		pre.placer.pace([]*GPU{pre.byID[grant.GPU]})
	}
}

// bookSuspendedMemory allocates host memory for the GPU memory of a suspended task.
func (l *ledger) bookSuspendedMemory(t *Task) {
	h := l.host(t.Last().Host.Node)
	if h == nil {
		return
	}
	if r := h.resident(t.ID); r != nil {
		free := h.free()
		r.SuspendedMemory, r.Lent = t.suspendedMemory(), t.lent()
		h.settle()
		l.dirty = l.dirty || h.free() > free // others may have what it lends
	}
}

// lends returns the part of a task's host memory that others may use while it is
// suspended: of an allocation that it did not request, the part it was not seen to use.
// When it resumes it gets this part back, even if that exceeds what is free then.
func (l *ledger) lends(t *Task) units.Bytes {
	h := l.host(t.Last().Host.Node)
	if h == nil || t.asks() > 0 {
		return 0
	}
	r := h.resident(t.ID)
	if r == nil || r.Peak == 0 {
		return 0
	}
	return max(0, r.Memory-max(r.Peak, leastHost))
}

// lent returns the host memory that a task lends now.
func (t *Task) lent() units.Bytes {
	if t.Suspension == nil {
		return 0
	}
	return t.Suspension.Lent
}

// hostHolds reports whether a machine has host memory for a task and for the GPU memory
// of its victims. The memory that the victims lend counts as free.
func (q *schedulingQueue) hostHolds(t *Task, h *Host, victims ...*Task) bool {
	share, no := q.hostFits(t, h)
	if no.Code != "" && (no.Code != ReasonHostMemory || share.Memory > h.most() || share.CPUs > 0 && share.CPUs > h.CPUs-h.CPUsBooked) {
		return false
	}
	sum := share.Memory
	for _, v := range victims {
		sum += q.onGPUs(v) - q.lends(v)
	}
	return sum <= h.free()
}

// suspendedMemory returns the host memory allocated for the GPU memory of a suspended
// task.
func (t *Task) suspendedMemory() units.Bytes {
	if t.Suspension == nil {
		return 0
	}
	return t.Suspension.Host
}

// suspendedTime returns the total time for which the current attempt has been suspended.
func (l *ledger) suspendedTime(t *Task) time.Duration { return t.suspendedBy(l.now) }

// suspendedBy is suspendedTime at an instant, which is not before its last suspension.
func (t *Task) suspendedBy(at units.Instant) time.Duration {
	away := t.Last().SuspendedTime
	if t.Suspension != nil && t.Suspension.Since > 0 {
		away += at.Sub(t.Suspension.Since)
	}
	return away
}

// suspended handles the answer to [Suspend].
func (s *State) suspended(ev SuspendDone) {
	t := s.tasks[ev.Task]
	if t == nil || t.Phase != Suspending || t.Last().N != ev.Attempt {
		return
	}
	if ev.Failure != "" {
		why := t.Suspension.Reason
		t.Reason, t.Last().Stays = Reason{Code: ReasonNotSuspended, Text: ev.Failure}, true
		s.preempter.backRunning(t)
		s.preempter.keepRunning(t, why)
		return
	}
	a, away := t.Current(), t.Suspension
	t.forgets(ReasonNotSuspended)
	for _, grant := range a.Grants {
		a.Peak = max(a.Peak, s.byID[grant.GPU].resident(t.ID).Peak)
	}
	s.holdsAgain(t)
	s.preempter.onSuspended(t, away.Reason)
	s.users.vacate(t)
	for _, grant := range a.Grants {
		s.takeOff(s.byID[grant.GPU], t.ID)
	}
	t.Phase, away.Since, away.From = Suspended, s.now, slices.Clone(a.Grants)
	s.addResidue(t)
	s.dirty = true
	if away.preemptor() != 0 {
		s.at(s.now.Add(wayBack), timer{})
	}
	if t.waiting() {
		s.enqueue(t, Suspended)
	}
}

// forceSuspend repeats a recorded suspension.
func (s *State) forceSuspend(t *Task, d Suspend) {
	if t.Phase != Running || t.Last().N != d.Attempt {
		return
	}
	what := suspensionFor(d.Reason, d.Host)
	what.Lent, what.InPlace = d.Lent, d.Leave
	if f := s.tasks[what.preemptor()]; s.opt.preempts() && f != nil && f.waiting() {
		for _, grant := range t.Current().Grants[:min(t.GPUs, f.GPUs)] {
			if g := s.byID[grant.GPU]; g.NominatedFor == 0 && s.resumeTargets(f, g) {
				g.NominatedFor, f.WayAt = f.ID, s.now
			}
		}
	}
	s.preempter.beginSuspension(t, what)
}
