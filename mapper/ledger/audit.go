package ledger

import (
	"fmt"
	"slices"

	"carma/internal/units"
	"carma/mapper/model"
)

// AuditGPU checks the sums and the residents of a GPU.
func (l *Ledger) AuditGPU(g *model.GPU) error {
	var sum units.Bytes
	for _, r := range g.Residents {
		sum += r.Grant
		if r.Grant != r.Grant.Clamp() || r.Used != r.Used.Clamp() {
			return fmt.Errorf("GPU %d: task %d has a grant of %d bytes and uses %d", g.Index, r.Task, r.Grant, r.Used)
		}
		if r.Exclusive && len(g.Residents) > 1 {
			return fmt.Errorf("GPU %d: task %d should be alone, %d tasks are there", g.Index, r.Task, len(g.Residents))
		}
		if t := l.tasks[r.Task]; t == nil || !t.Phase.Placed() {
			return fmt.Errorf("GPU %d: holds memory for task %d, which is not placed", g.Index, r.Task)
		}
	}
	if g.Capacity != g.Capacity.Clamp() || g.OtherProcesses != g.OtherProcesses.Clamp() {
		return fmt.Errorf("GPU %d: has %d bytes, %d of them in foreign use", g.Index, g.Capacity, g.OtherProcesses)
	}
	if err := g.CheckSums(); err != nil {
		return err
	}
	if sum != g.Reserved {
		return fmt.Errorf("GPU %d: reserved is %d bytes, the grants sum to %d", g.Index, g.Reserved, sum)
	}
	if len(g.Residents) > 0 && g.Reserved > g.Bookable {
		return fmt.Errorf("GPU %d: %s reserved of %s", g.Index, g.Reserved, g.Bookable)
	}
	return nil
}

// AuditTask checks a task that is in a number of queues and on a number of GPUs.
func (l *Ledger) AuditTask(t *model.Task, places, waits int) error {
	n := 0
	for _, a := range t.Attempts {
		if n += a.NumStarts(); a.N != n {
			return fmt.Errorf("task %d: attempt %d has the number %d", t.ID, n, a.N)
		}
	}
	switch {
	case t.ID > l.lastID || t.GPUs < 1 != t.NoGPU || t.NextGrant != t.NextGrant.Clamp():
		return fmt.Errorf("task %d wants %d GPUs and %d bytes, the last task is %d", t.ID, t.GPUs, t.NextGrant, l.lastID)
	case t.Phase.Finished():
		return fmt.Errorf("task %d is finished and still here", t.ID)
	case (t.Suspension == nil) == (t.Phase == model.Suspending || t.Phase == model.Suspended || t.Phase == model.Resuming) && t.Phase != model.Stopping:
		return fmt.Errorf("task %d (%s) has the suspension %+v", t.ID, t.Phase, t.Suspension)
	case t.Phase == model.Suspended:
		if a := t.Suspension; (waits == 1) != t.Waiting() || waits > 1 || places != 0 || len(t.Attempts) == 0 || a.Since == 0 || len(a.From) != t.GPUs {
			return fmt.Errorf("task %d is suspended, in %d queues and on %d GPUs: %+v", t.ID, waits, places, t.Suspension)
		}
	case t.Phase == model.Queued || t.Phase == model.Recovering:
		if waits != 1 || places != 0 {
			return fmt.Errorf("task %d (%s) is in %d queues and on %d GPUs", t.ID, t.Phase, waits, places)
		}
	case t.Phase.Placed():
		if grants := t.Current().Grants; waits != 0 || places != t.GPUs || len(grants) != t.GPUs {
			return fmt.Errorf("task %d (%s) wants %d GPUs, has grants on %d and is on %d", t.ID, t.Phase, t.GPUs, len(grants), places)
		}
		return l.auditGrants(t, t.Current().Grants)
	case t.Phase != model.Estimating && t.Phase != model.Held || waits != 0 || places != 0:
		return fmt.Errorf("task %d (%s) is in %d queues and on %d GPUs", t.ID, t.Phase, waits, places)
	}
	return nil
}

func (l *Ledger) auditGrants(t *model.Task, grants []model.Grant) error {
	if a := t.Current(); t.GPUs == 0 || a.Host != (model.HostShare{}) {
		if h := l.Host(a.Host.Node); h == nil || h.Resident(t.ID) == nil {
			return fmt.Errorf("task %d is not on the page of its machine %q", t.ID, a.Host.Node)
		}
	}
	for i, grant := range grants {
		g := l.byID[grant.GPU]
		if g == nil || g.Resident(t.ID) == nil || g.Resident(t.ID).Grant != grant.Memory {
			return fmt.Errorf("task %d has a grant on %s that is not booked there", t.ID, grant.GPU)
		}
		if g.Node != l.byID[grants[0].GPU].Node {
			return fmt.Errorf("task %d has GPUs on two machines", t.ID)
		}
		if slices.ContainsFunc(grants[:i], func(o model.Grant) bool { return o.GPU == grant.GPU }) {
			return fmt.Errorf("task %d has GPU %d twice", t.ID, g.Index)
		}
	}
	return nil
}

// AuditLaunch checks a launch of the latest step: together with the observed memory of
// other processes, the new grants fit on each of its GPUs.
func (l *Ledger) AuditLaunch(d model.Launch) error {
	if h := l.Host(d.Host.Node); h != nil && h.Known && (h.Booked > h.Memory || d.Host.CPUs > 0 && h.CPUsBooked > h.CPUs) {
		return fmt.Errorf("machine %q: task %d launched with %s of %s and %d of %d CPUs booked", h.Node, d.Task, h.Booked, h.Memory, h.CPUsBooked, h.CPUs)
	}
	for _, grant := range d.Grants {
		g := l.byID[grant.GPU]
		if g == nil || g.Resident(d.Task) == nil {
			return fmt.Errorf("task %d was launched on %s without a booking", d.Task, grant.GPU)
		}
		if g.MIG && len(d.Grants) > 1 {
			return fmt.Errorf("GPU %d: task %d was launched on several GPUs, and this is a part of a card", g.Index, d.Task)
		}
		if l.opt.Booking == model.BookSamples && !d.Alone { // nothing is allocated, so the limits do not matter
			if grant.Memory != 0 {
				return fmt.Errorf("GPU %d: task %d has %s booked where nothing is to be", g.Index, d.Task, grant.Memory)
			}
			continue
		}
		if g.Reserved+g.OtherProcesses+l.opt.Headroom > g.Capacity {
			return fmt.Errorf("GPU %d: task %d launched with %s reserved, %s foreign, %s headroom on %s",
				g.Index, d.Task, g.Reserved, g.OtherProcesses, l.opt.Headroom, g.Capacity)
		}
	}
	return nil
}

// AuditKindLinks checks that each unfinished task with a kind is linked exactly once.
func (x *taskIndex) AuditKindLinks() error {
	linked, slots := 0, 0
	for _, t := range x.tasks {
		newest := x.byKind[t.Kind]
		if newest == t && x.links.Of(t).newer == nil {
			for o := t; o != nil; o = x.links.Of(o).older {
				older := x.links.Of(o).older
				if linked++; o.Kind != t.Kind || x.tasks[o.ID] != o || older != nil && x.links.Of(older).newer != o {
					return fmt.Errorf("task %d is not linked with those of its kind", o.ID)
				}
			}
		}
		if t.Kind == "" {
			linked++
		}
		if t.Slot > 0 {
			slots++
		}
	}
	if linked != len(x.tasks) || slots != x.slots {
		return fmt.Errorf("%d of %d tasks are linked with those of their kind, %d of %d slots counted", linked, len(x.tasks), x.slots, slots)
	}
	return nil
}

// AuditHosts checks the machines: the allocated memory and CPUs are the sums over the
// attempts.
func (l *Ledger) AuditHosts() error {
	for i, h := range l.hosts {
		if i > 0 && l.hosts[i-1].Node >= h.Node {
			return fmt.Errorf("machine %q is not where it belongs", h.Node)
		}
		if err := h.CheckSums(); err != nil {
			return err
		}
		for _, r := range h.Residents {
			t := l.tasks[r.Task]
			if t == nil || t.Alive() == nil {
				return fmt.Errorf("machine %q: holds memory for task %d, which is not placed", h.Node, r.Task)
			}
			if a := t.Alive(); a.Host.Node != h.Node || a.Host.Memory != r.Memory || a.Host.CPUs != r.CPUs || r.SuspendedMemory != t.SuspendedMemory() || r.Lent != t.LentMemory() || r.Lent < 0 || r.Lent > r.Memory || r.Memory != r.Memory.Clamp() || r.CPUs < 0 {
				return fmt.Errorf("machine %q: task %d has %s and %d CPUs booked, its attempt %+v", h.Node, r.Task, r.Memory, r.CPUs, a.Host)
			}
		}
	}
	return nil
}

// AuditCeiling checks the stored memory of empty GPUs.
func (l *Ledger) AuditCeiling() error {
	if most := l.Ceiling(l.Bookable); l.emptyCeiling != nil && !slices.Equal(most, l.emptyCeiling) {
		return fmt.Errorf("%v can be booked on empty GPUs, kept as %v", most, l.emptyCeiling)
	}
	return nil
}

// AuditFit checks the cached answer whether a task can fit now.
func (l *Ledger) AuditFit(t *model.Task) error {
	got, kept := l.CanFit(t), l.ceilings
	l.CapacityChanged()
	want := l.CanFit(t)
	if l.ceilings = kept; got != want {
		return fmt.Errorf("task %d could fit: %v, by what is kept: %v", t.ID, want, got)
	}
	return nil
}
