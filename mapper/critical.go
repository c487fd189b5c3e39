package mapper

import (
	"cmp"
	"slices"

	"carma/mapper/model"
	"carma/mapper/queue"
)

// startCritical starts critical tasks ahead of their place in the queue. A task is
// critical if its expected run time is at least the time in which the GPUs could do all
// work of running and waiting tasks. Shortest-first alone would leave long tasks to the
// end, when most GPUs are idle. Only the highest priority that waits is considered.
func (sc *scheduler) startCritical(p *cycle) {
	lanes := sc.queue.Main()
	if !sc.Options().ShortestFirst() || queue.LanesLen(lanes) > criticalQueue*len(sc.GPUList()) {
		sc.queue.DropBacklog() // nothing would keep it up to date
		return                 // no task is longer than so many together
	}
	first := slices.IndexFunc(lanes, func(l queue.Lane) bool { return l.Len() > 0 })
	if first < 0 || lanes[first].Users() > 1 {
		return // users take turns, however long their tasks are
	}
	critical := sc.critical[:0]
	for _, t := range sc.placer.Critical(first) {
		// A task that gave its slot to others must not go before them.
		if t.Behind == 0 && t.NotBefore <= sc.Now() && sc.breakers.MayLaunch(t) && sc.CanFit(t) && !sc.reserve.IsBarred(t) && !sc.bounded(t) {
			critical = append(critical, t)
		}
	}
	sc.critical = critical
	slices.SortFunc(critical, func(a, b *model.Task) int {
		x, _ := sc.predictor.RunTime(a)
		y, _ := sc.predictor.RunTime(b)
		return cmp.Or(cmp.Compare(y.Seconds()*float64(b.GPUs), x.Seconds()*float64(a.GPUs)), cmp.Compare(a.ID, b.ID))
	})
	for _, t := range critical {
		if sc.launchesPaused() {
			return
		}
		if sc.bounded(t) {
			continue // a launch in this loop reached its user's limit, or was a probe
		}
		if gpus := sc.placer.Place(p.Cycle, t); gpus != nil {
			sc.queue.Remove(t)
			sc.attempts.Bind(t, gpus)
			sc.placer.UpdateFree(p.Cycle)
		} else if t.GPUs > 1 && p.Favoured() == nil {
			sc.placer.ReserveCritical(p.Cycle, t)
		}
	}
}

// criticalQueue is the number of waiting tasks per GPU above which critical tasks are not
// searched: no task runs as long as so many others together.
const criticalQueue = 16
