package ledger

import (
	"slices"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
)

// IsNominated reports whether a GPU is nominated for a task.
func (in *inventory) IsNominated(t *model.Task) bool {
	return in.opt.Preempts() && slices.ContainsFunc(in.gpus, func(g *model.GPU) bool { return g.NominatedFor == t.ID })
}

// LeavingForOther reports whether any task is being suspended for a task.
func (l *Ledger) LeavingForOther(id model.TaskID) bool {
	return slices.ContainsFunc(l.gpus, func(g *model.GPU) bool {
		return g.NominatedFor == id && slices.ContainsFunc(g.Residents, func(r model.Resident) bool {
			v := l.tasks[r.Task]
			return v.Phase == model.Suspending && v.Suspension.Preemptor() == id
		})
	})
}

// SuspendedTooLong reports whether a task has been suspended for others for so long that
// it may preempt the tasks on its GPUs.
func (l *Ledger) SuspendedTooLong(t *model.Task) bool {
	return l.opt.Preempts() && t.Phase == model.Suspended && t.Suspension.Preemptor() != 0 && l.now >= t.Suspension.Since.Add(SuspendedTooLongAfter)
}

// ResumeTargets reports whether a task may resume on a GPU; a task that is not suspended
// may use any.
func (in *inventory) ResumeTargets(t *model.Task, g *model.GPU) bool {
	if t.Phase != model.Suspended {
		return true
	}
	if t.Suspension.Includes(g.ID) || t.Suspension.InPlace {
		return t.Suspension.Includes(g.ID)
	}
	had := in.byID[t.Suspension.From[0].GPU]
	return had != nil && g.Suspend == model.SuspendMove && g.Model != "" && g.Model == had.Model && g.Node == had.Node && g.Capacity >= had.Capacity && !g.MIG && !had.MIG
}

// ComesBackTo reports whether a suspended task may resume on a GPU.
func (l *Ledger) ComesBackTo(id model.TaskID, gpu model.GPUID) bool {
	t, g := l.tasks[id], l.byID[gpu]
	return t != nil && g != nil && t.Phase == model.Suspended && l.ResumeTargets(t, g)
}

// CannotSuspend says why a task cannot be suspended now, or returns the zero Reason.
func (l *Ledger) CannotSuspend(id model.TaskID) model.Reason {
	t := l.tasks[id]
	if t == nil || t.Phase != model.Running || t.GPUs == 0 {
		return model.Reason{Code: model.ReasonNotRunning}
	}
	if no := l.DriverCannot(t); no.Code != "" && !t.Last().Leaves {
		return no
	}
	g := l.byID[t.Current().Grants[0].GPU]
	need := l.SuspendableOn(t)
	if h := l.Host(g.Node); h != nil && h.Known && h.FreeMemory()+l.LendsMemory(t) < need {
		return model.Reason{Code: model.ReasonHostFull, Need: need, Have: max(0, h.FreeMemory()+l.LendsMemory(t))}
	}
	return model.Reason{}
}

// DriverCannot says why the driver cannot suspend a running task, or returns the zero
// Reason.
func (in *inventory) DriverCannot(t *model.Task) model.Reason {
	g := in.byID[t.Current().Grants[0].GPU]
	switch {
	case t.GPUs > 1:
		return model.Reason{Code: model.ReasonSeveralGPUs, Count: t.GPUs}
	case g.Suspend == model.SuspendNever || g.Missing:
		return model.Reason{Code: model.ReasonCannotSuspend, GPU: g.Index}
	case g.SuspendAlone && !t.NextExclusive:
		return model.Reason{Code: model.ReasonMPSClient, GPU: g.Index}
	}
	return model.Reason{}
}

// SuspendableOn returns the GPU memory that a running task uses: its observed memory, or its
// grant if that was not observed.
func (in *inventory) SuspendableOn(t *model.Task) (sum units.Bytes) {
	for _, grant := range t.Current().Grants {
		if r := in.byID[grant.GPU].Resident(t.ID); r.Peak > 0 {
			sum += max(r.Used, r.Peak)
		} else {
			sum += r.Grant
		}
	}
	return sum
}

// LendsMemory returns the part of a task's host memory that others may use while it is
// suspended: of an allocation that it did not request, the part it was not seen to use.
// When it resumes it gets this part back, even if that exceeds what is free then.
func (l *Ledger) LendsMemory(t *model.Task) units.Bytes {
	h := l.Host(t.Last().Host.Node)
	if h == nil || t.HostRequest() > 0 {
		return 0
	}
	r := h.Resident(t.ID)
	if r == nil || r.Peak == 0 {
		return 0
	}
	return max(0, r.Memory-max(r.Peak, LeastHost))
}

// RestedAt returns the instant from which an attempt may be suspended again for the
// benefit of others, or 0 if it was never suspended.
func (in *inventory) RestedAt(a *model.Attempt) units.Instant {
	if a.Back == 0 {
		return 0
	}
	return a.Back.Add(in.opt.SuspendLeast)
}

// OnOriginalGPUs limits a need to the memory that each GPU of a task could give it.
func (in *inventory) OnOriginalGPUs(t *model.Task, need units.Bytes) units.Bytes {
	for _, grant := range t.Last().Grants {
		if g := in.byID[grant.GPU]; g != nil {
			need = min(need, g.Capacity-in.opt.Headroom)
		}
	}
	return max(0, need)
}

// HoldsAgain sets the next grant of a task to the most memory that it has on a GPU,
// because that much must fit again.
func (in *inventory) HoldsAgain(t *model.Task) {
	need := t.NextGrant
	for i, grant := range t.Last().Grants {
		g := in.byID[grant.GPU]
		if r := g.Resident(t.ID); r != nil && !r.Exclusive {
			has := r.Taken()
			if t.Learner { // its grant is all free memory
				has = max(t.NextGrant, r.Used)
			}
			if has = max(0, has); i == 0 || has > need {
				need = has
			}
		}
	}
	t.NextGrant = in.OnOriginalGPUs(t, need)
}

// SlotOf returns the time for which an attempt of a task may run while others wait, or 0
// for no limit.
func (in *inventory) SlotOf(t *model.Task) time.Duration {
	if t.Slot == 0 || in.opt.Slot == 0 {
		return max(t.Slot, in.opt.Slot)
	}
	return min(t.Slot, in.opt.Slot)
}

// SlotEnds returns the instant at which the slot of a running attempt is used up.
func (in *inventory) SlotEnds(t *model.Task) units.Instant {
	slot := in.SlotOf(t)
	if slot <= 0 || t.Phase != model.Running {
		return units.Never
	}
	a := t.Last()
	ends := a.SlotStart().Add(slot)
	if in.opt.SuspendSlots {
		ends = max(ends, in.RestedAt(a))
	}
	return ends
}

// SuspendedTooLongAfter is the time after which a suspended task may preempt others to resume.
const SuspendedTooLongAfter = 30 * time.Minute
