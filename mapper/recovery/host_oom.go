package recovery

import "carma/mapper/model"

// hostAgainFactor is the factor on the host memory used by a run that had too little.
const hostAgainFactor = 1.5

// hostOverrun handles the end of an attempt that ran out of host memory without a request
// for an amount: the next attempt is allocated more, as after a GPU OOM.
func (rc *Recovery) hostOverrun(t *model.Task, a *model.Attempt, code int, cause model.Reason) {
	t.HostOOMs++
	most := a.Host.Memory
	if h := rc.Host(a.Host.Node); h != nil && h.Known {
		most = h.MaxMemory()
	}
	used := max(a.HostPeak, a.Host.Memory)
	switch {
	case a.Host.Memory >= most:
		rc.lifecycle.Finish(t, model.Failed, code, model.Reason{Code: model.ReasonHostAll, Have: a.Host.Memory}.WithCause(cause))
		return
	case t.HostOOMs >= rc.Options().Attempts:
		rc.lifecycle.Finish(t, model.Failed, code, cause)
		return
	}
	t.NextHostGrant = min(used.Scale(hostAgainFactor).Clamp(), most)
	rc.lifecycle.Requeue(t, model.Recovering, model.Reason{Code: model.ReasonHostAgain, Have: used, Need: t.NextHostGrant}.WithCause(cause))
}
