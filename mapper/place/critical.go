package place

import (
	"slices"

	"carma/mapper/model"
	"carma/mapper/predict"
	"carma/mapper/queue"
)

// drain returns the time, in seconds, in which the GPUs could do the SM work of all
// running and waiting tasks if they were always busy. It lies between least and most,
// which are very close. Above limit both may only mean "more than limit".
func (pl *Placer) drain(b *queue.Backlog, limit float64) (least, most float64) {
	if !b.Countable() {
		exactly := pl.drainExactly(limit)
		return exactly, exactly
	}
	n := float64(len(pl.GPUList()))
	low, high := b.WorkBounds()
	if low*(1-predict.Rounding) > limit*n {
		return low / n, low / n
	}
	running := 0.0
	for _, g := range pl.GPUList() {
		running += pl.scorer.memo(g).work
	}
	return (low + running) * (1 - predict.Rounding) / n, (high + running) * (1 + predict.Rounding) / n
}

// drainExactly computes drain exactly, adding in the order of the queue. It stops
// counting above limit.
func (pl *Placer) drainExactly(limit float64) float64 {
	work, most := 0.0, limit*float64(len(pl.GPUList()))
	for i := range pl.queue.Main() {
		for _, t := range pl.queue.Main()[i].Waiting() {
			work = pl.predictor.SMWork(t, work)
		}
	}
	for _, g := range pl.GPUList() {
		if work > most {
			break
		}
		for _, p := range pl.scorer.memo(g).parts {
			work += p.Left * p.SM
		}
	}
	return work / float64(len(pl.GPUList()))
}

// Critical returns the tasks of a lane of the main queue whose run time is at least
// drain, the longest first.
func (pl *Placer) Critical(lane int) []*model.Task {
	b := pl.queue.Backlog()
	all := b.Lane(lane)
	least, most := pl.drain(b, b.RunTime(all[0]).Seconds())
	atLeast := func(drain float64) int {
		i, _ := slices.BinarySearchFunc(all, drain, func(t *model.Task, drain float64) int {
			if b.RunTime(t).Seconds() >= drain {
				return -1
			}
			return 1
		})
		return i
	}
	n := atLeast(least)
	if n != atLeast(most) {
		n = atLeast(pl.drainExactly(b.RunTime(all[0]).Seconds()))
	}
	return all[:n]
}
