package preempt

import (
	"cmp"
	"slices"

	"carma/internal/units"
	"carma/mapper/model"
)

// promised is the part of a machine that rotate has already promised to waiting tasks.
type promised struct {
	memory units.Bytes
	cpus   int64
}

// hostVictims returns the tasks that must stop for a machine to have room for a task, the
// longest running first. fits is false if it would not have room even then.
func (r *timeslice) hostVictims(t *model.Task) (victims []model.TaskID, fits bool) {
	pre := r.pre
	for _, h := range pre.HostList() {
		if victims, fits = r.victimsAt(t, h); fits {
			share := pre.HostShareOf(t, h)
			p := r.promised[h.Node]
			r.promised[h.Node] = promised{p.memory + share.Memory, p.cpus + share.CPUs}
			return victims, true
		}
	}
	return nil, false
}

func (r *timeslice) victimsAt(t *model.Task, h *model.Host) (victims []model.TaskID, fits bool) {
	pre := r.pre
	then := h.Clone()
	then.Available = 0
	given := r.promised[h.Node]
	room := func() bool {
		then.Settle()
		share := pre.HostShareOf(t, then)
		return !h.Known || share.Memory <= then.FreeMemory()-given.memory && (share.CPUs == 0 || share.CPUs <= then.CPUs-then.CPUsBooked-given.cpus)
	}
	var over []*model.Task
	then.Residents = slices.DeleteFunc(then.Residents, func(x model.HostResident) bool {
		v := pre.TaskByID(x.Task)
		if pre.SlotEnds(v) <= pre.Now() && pre.queue.Before(t, pre.rotated(v)) {
			over = append(over, v)
		}
		return v.Phase == model.Stopping
	})
	slices.SortFunc(over, func(a, b *model.Task) int {
		return cmp.Or(cmp.Compare(a.Last().Started, b.Last().Started), cmp.Compare(a.ID, b.ID))
	})
	for {
		if room() {
			return victims, !pre.reserve.HostReservedAgainst(t, h)
		}
		if len(over) == 0 {
			return nil, false
		}
		gone := over[0].ID
		over, victims = over[1:], append(victims, gone)
		then.Residents = slices.DeleteFunc(then.Residents, func(x model.HostResident) bool { return x.Task == gone })
	}
}

// couldFitHost reports whether a task on GPUs would have host memory if all tasks with
// used slots stopped.
func (r *timeslice) couldFitHost(t *model.Task) bool {
	if len(r.pre.HostList()) == 0 {
		return true
	}
	return slices.ContainsFunc(r.pre.GPUList(), func(g *model.GPU) bool {
		h := r.pre.Host(g.Node)
		if h == nil {
			return true
		}
		_, fits := r.victimsAt(t, h)
		return fits
	})
}
