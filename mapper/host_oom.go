package mapper

import "carma/internal/units"

// What became of a task that needed more host memory, and why it was stopped for it.
const (
	ReasonHostAgain   ReasonCode = "host-oom-again" // it used Have and runs again with Need booked
	ReasonHostAll     ReasonCode = "host-oom-all"   // it had Have: there is no more
	ReasonHostOveruse ReasonCode = "host-overuse"   // the machine ran low, and it used Have of the Of booked for it
	ReasonTooMuchHost ReasonCode = "too-much-host"  // Need host memory is wanted, a task may have Of
	ReasonTooManyCPUs ReasonCode = "too-many-cpus"  // More thousandths of a processor are wanted, there are Limit
)

// From the history a task is booked its highest host memory times hostFactor and
// hostExtra: samples miss short spikes, and data loaders differ from run to run.
const (
	hostFactor = 1.15
	hostExtra  = 256 * units.MiB
	// hostAgainFactor is what is booked after a run that had too little.
	hostAgainFactor = 1.5
)

// recallHost takes what earlier runs of a task's kind have used of host memory.
func (s *State) recallHost(t *Task) {
	if e := s.history.of(t.Kind); s.opt.Learn && e != nil && e.HostPeak > 0 {
		t.NextHostGrant = max(t.NextHostGrant, (e.HostPeak.Scale(hostFactor) + hostExtra).Clamp())
	}
}

// hostOverrun follows the end of an attempt that ran out of host memory though it
// had not asked for an amount: the next books more, as after a GPU OOM.
func (s *State) hostOverrun(t *Task, a *Attempt, code int, cause Reason) {
	t.HostOOMs++
	most := a.Host.Memory
	if h := s.host(a.Host.Node); h != nil && h.Known {
		most = h.most()
	}
	used := max(a.HostPeak, a.Host.Memory)
	switch {
	case a.Host.Memory >= most:
		s.finish(t, Failed, code, Reason{Code: ReasonHostAll, Have: a.Host.Memory}.because(cause))
		return
	case t.HostOOMs >= s.opt.Attempts:
		s.finish(t, Failed, code, cause)
		return
	}
	t.NextHostGrant = min(used.Scale(hostAgainFactor).Clamp(), most)
	s.requeue(t, Recovering, Reason{Code: ReasonHostAgain, Have: used, Need: t.NextHostGrant}.because(cause))
}

// overranHost reports whether that is for [State.hostOverrun] to follow: a task that
// asked for an amount knew what it wanted.
func (t *Task) overranHost(a *Attempt, class Class) bool {
	return class == ExitHostOOM && t.HostMem == 0 && a.Host.Memory > 0
}

// guardHost stops a task where the machine runs low on memory: the one that is most
// above what is booked for it.
func (s *State) guardHost(h *Host) {
	if !h.Known || s.opt.Watchdog != WatchdogRelaunch || h.Available <= 0 || h.Available >= h.low()/2 {
		return
	}
	worst := -1
	for i := range h.Residents {
		r := &h.Residents[i]
		t := s.tasks[r.Task]
		if t.Overuse {
			return // one at a time: its memory is about to come back
		}
		if over := r.Used - r.Memory; over > 0 && t.Phase == Running && (worst < 0 || over > h.Residents[worst].Used-h.Residents[worst].Memory) {
			worst = i
		}
	}
	if worst >= 0 {
		r := &h.Residents[worst]
		t := s.tasks[r.Task]
		t.Overuse = true
		s.stop(t, Reason{Code: ReasonHostOveruse, Have: r.Used, Of: r.Memory})
	}
}

// valid reports whether a share makes sense.
func (h HostShare) valid() bool {
	return h.Memory == h.Memory.Clamp() && h.CPUs >= 0 && h.CPUs <= mostCPUs
}
