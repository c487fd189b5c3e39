package place

import (
	"slices"

	"carma/internal/units"
	"carma/mapper/ledger"
	"carma/mapper/model"
)

// freeSummary is the most that the GPUs can take. With it a scheduling cycle skips most
// tasks that do not fit without checking each GPU.
type freeSummary struct {
	open int             // GPUs that pass the preconditions common to all tasks
	idle int             // of these, idle
	free [16]units.Bytes // the most free memory among them, descending
}

// freeSummary returns the summary for a cycle. It omits the GPUs of the head reservation
// once the cycle has passed the task for which they are reserved (favoured).
func (tr *tracker) freeSummary(favoured bool) (v freeSummary) {
	l := &tr.dirty
	if !l.valid { // the GPUs have changed during the cycle
		for _, g := range tr.GPUList() {
			if o := tr.OpenState(g); o.Open && !tr.reserve.SkippedBySummary(favoured, g) {
				v.add(o)
			}
		}
		return v
	}
	for _, g := range l.marked {
		tr.tally(g)
	}
	v.open, v.idle = len(l.free), l.idle
	var aside []units.Bytes
	for _, id := range tr.reserve.Head().GPUs {
		if g := tr.GPU(id); g != nil && cacheOf(g).dirty.open.Open && tr.reserve.SkippedBySummary(favoured, g) {
			aside = append(aside, cacheOf(g).dirty.open.FreeMemory)
			v.open--
			if g.Idle() {
				v.idle--
			}
		}
	}
	n := 0
	for i := len(l.free) - 1; i >= 0 && n < len(v.free); i-- {
		if at := slices.Index(aside, l.free[i]); at >= 0 {
			aside = slices.Delete(aside, at, at+1)
			continue
		}
		v.free[n] = l.free[i]
		n++
	}
	return v
}

func (v *freeSummary) add(o ledger.OpenState) {
	if o.Idle {
		v.idle++
	}
	free := o.FreeMemory
	i := min(v.open, len(v.free)-1)
	v.open++
	if v.open > len(v.free) && free <= v.free[i] {
		return
	}
	for ; i > 0 && v.free[i-1] < free; i-- {
		v.free[i] = v.free[i-1]
	}
	v.free[i] = free
}

func (v *freeSummary) possible(t *model.Task, alone bool) bool {
	if alone && v.idle < t.GPUs {
		return false
	}
	if t.ResumesInPlace() { // its residue on its GPUs does not count as free
		return v.open >= t.GPUs
	}
	return v.open >= t.GPUs && v.free[min(t.GPUs, len(v.free))-1] >= max(t.NextGrant, 1)
}
