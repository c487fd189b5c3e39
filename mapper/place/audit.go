package place

import (
	"fmt"
	"slices"

	"carma/internal/units"
	"carma/mapper/model"
)

// AuditGPUs returns an error if a cached result about GPUs is wrong. A GPU that is marked
// or due is checked in the next cycle, and has none.
func (tr *tracker) AuditGPUs() error {
	l := &tr.dirty
	if !l.valid {
		return nil
	}
	var free []units.Bytes
	idle, due := 0, false
	for _, g := range tr.GPUList() {
		n := &cacheOf(g).dirty
		if n.all != l || n.marked != slices.Contains(l.marked, g) || l.due[n.place] != g {
			return fmt.Errorf("GPU %s is not kept as it should be", g.ID)
		}
		if n.open.Open {
			free = append(free, n.open.FreeMemory)
		}
		if n.open.Idle {
			idle++
		}
		if changed := cacheOf(g).changedAt >= l.since; changed != slices.Contains(l.recent, g) {
			return fmt.Errorf("GPU %s has changed: %v, and is listed so: %v", g.ID, changed, !changed)
		}
		if short := tr.ShortOfMemory(g); short && !n.marked && !slices.Contains(l.short, g) {
			return fmt.Errorf("GPU %s is short of memory, and not listed so", g.ID)
		}
		if due = due || n.due <= tr.Now(); n.marked || n.due <= tr.Now() {
			continue
		}
		if f := tr.gpuState(g); f != cacheOf(g).state {
			return fmt.Errorf("GPU %s is in state %+v and was last checked in %+v", g.ID, f, cacheOf(g).state)
		}
		if o := tr.OpenState(g); o != n.open {
			return fmt.Errorf("GPU %s is open: %+v, and counted as %+v", g.ID, o, n.open)
		}
	}
	slices.Sort(free)
	if !slices.Equal(free, l.free) || idle != l.idle {
		return fmt.Errorf("open GPUs have %v, %d idle, and are listed as %v, %d idle", free, idle, l.free, l.idle)
	}
	if !slices.IsSortedFunc(l.recent, comparePos) || len(slices.Compact(slices.Clone(l.recent))) < len(l.recent) {
		return fmt.Errorf("the GPUs that have changed are not in order, each once")
	}
	if due {
		return nil
	}
	for _, favoured := range []bool{false, true} {
		got := tr.freeSummary(favoured)
		l.valid = false
		want := tr.freeSummary(favoured)
		if l.valid = true; got != want {
			return fmt.Errorf("the cached summary is %+v, that of all GPUs %+v", got, want)
		}
	}
	return nil
}

// AuditTask returns an error if a cached result about a waiting task is wrong.
func (pl *Placer) AuditTask(t *model.Task) error {
	for _, g := range pl.Skipped(t) {
		if pl.Reject(t, g) == "" {
			return fmt.Errorf("GPU %s, which would be skipped, takes task %d", g.ID, t.ID)
		}
	}
	if !pl.Predicts() || t.GPUs == 0 {
		return nil
	}
	for _, g := range pl.GPUList() {
		was := cacheOf(g).ready
		for _, before := range []units.Instant{units.Never, was.at} {
			cacheOf(g).ready = was
			got := pl.readyAt(t, g, before)
			cacheOf(g).ready = gpuReadyTime{}
			if want := pl.readyAt(t, g, before); min(got, before) != min(want, before) {
				return fmt.Errorf("GPU %s is ready for task %d at %d, from the cache at %d, of those before %d", g.ID, t.ID, want, got, before)
			}
		}
		cacheOf(g).ready = was
	}
	return nil
}

// AuditDrain returns an error if drain is not between its bounds, or these are far apart.
func (pl *Placer) AuditDrain() error {
	const limit = 1e9 // nothing is left out
	least, most := pl.drain(pl.queue.Backlog(), limit)
	if exactly := pl.drainExactly(limit); least > exactly || exactly > most || most-least > 1e-3*most {
		return fmt.Errorf("drain is %v, by its bounds from %v to %v", exactly, least, most)
	}
	return nil
}

// Skipped returns the GPUs that are not asked for a task because they have rejected an
// equal request.
func (pl *Placer) Skipped(t *model.Task) (all []*model.GPU) {
	at, but := pl.cachedRejection(t)
	if at == 0 || pl.reserve.Any() {
		return nil
	}
	for _, g := range pl.GPUList() {
		if l := &cacheOf(g).dirty; cacheOf(g).changedAt <= at && !l.marked && l.due > pl.Now() && !slices.Contains(but, g.ID) {
			all = append(all, g)
		}
	}
	return all
}
