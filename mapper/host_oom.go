package mapper

import "carma/internal/units"

// Why a task needed more host memory, and why it was stopped for it.
const (
	ReasonHostAgain   ReasonCode = "host-oom-again" // it used Have and runs again with Need allocated
	ReasonHostAll     ReasonCode = "host-oom-all"   // it had Have: there is no more memory
	ReasonHostOveruse ReasonCode = "host-overuse"   // the machine ran low, and it used Have, more than its allocation Of
	ReasonTooMuchHost ReasonCode = "too-much-host"  // it needs Need host memory, a task may have Of
	ReasonTooManyCPUs ReasonCode = "too-many-cpus"  // it needs More thousandths of a processor, there are Limit
)

// From history a task is allocated its highest host memory times hostFactor plus
// hostExtra: samples miss short spikes, and data loaders differ from run to run.
const (
	hostFactor = 1.15
	hostExtra  = 256 * units.MiB
	// hostAgainFactor is the factor on the memory used by a run that had too little.
	hostAgainFactor = 1.5
)

// recallHost applies the host memory that earlier runs of a task's kind have used.
func (pr *predictor) recallHost(t *Task) {
	if e := pr.history.of(t.Kind); pr.opt.Learn && e != nil && e.HostPeak > 0 {
		t.NextHostGrant = max(t.NextHostGrant, (e.HostPeak.Scale(hostFactor) + hostExtra).Clamp())
	}
}

// hostOverrun handles the end of an attempt that ran out of host memory without a request
// for an amount: the next attempt is allocated more, as after a GPU OOM.
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

// overranHost reports whether [State.hostOverrun] handles the end of an attempt: a task
// that requested an amount fails instead.
func (t *Task) overranHost(a *Attempt, class Class) bool {
	return class == ExitHostOOM && t.HostMem == 0 && a.Host.Memory > 0
}

// guardHost stops a task on a machine that runs low on memory: the one that exceeds its
// allocation most.
func (pre *preempter) guardHost(h *Host) {
	if !h.Known || pre.opt.Watchdog != WatchdogRelaunch || h.Available <= 0 || h.Available >= h.low()/2 {
		return
	}
	worst := -1
	for i := range h.Residents {
		r := &h.Residents[i]
		t := pre.tasks[r.Task]
		if t.Overuse {
			return // one at a time: its memory is about to come back
		}
		if over := r.Used - r.Memory; over > 0 && t.Phase == Running && (worst < 0 || over > h.Residents[worst].Used-h.Residents[worst].Memory) {
			worst = i
		}
	}
	if worst >= 0 {
		r := &h.Residents[worst]
		t := pre.tasks[r.Task]
		t.Overuse = true
		pre.stop(t, Reason{Code: ReasonHostOveruse, Have: r.Used, Of: r.Memory})
	}
}

// valid reports whether a share makes sense.
func (h HostShare) valid() bool {
	return h.Memory == h.Memory.Clamp() && h.CPUs >= 0 && h.CPUs <= mostCPUs
}
