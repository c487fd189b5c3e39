package place

import (
	"carma/mapper/model"
	"carma/mapper/reserve"
)

// Cycle is the placer's part of one scheduling cycle.
type Cycle struct {
	fit      freeSummary
	head     *model.Task  // the first that does not fit
	favoured *model.Task  // the first task whose aging is over
	before   reserve.Head // the head reservation of the previous cycle
	failed   []failure
	blocked  []*model.Task // the tasks that were tried and did not fit
}

// Head returns the first task that did not fit, or nil.
func (c *Cycle) Head() *model.Task { return c.head }

// Favoured returns the task for which GPUs are reserved, or nil.
func (c *Cycle) Favoured() *model.Task { return c.favoured }

// Blocked returns the tasks that were tried and did not fit, in that order.
func (c *Cycle) Blocked() []*model.Task { return c.blocked }

// BeginCycle begins a scheduling cycle. The head reservation ends: the cycle decides
// again, and tasks before the favoured one must not be affected.
func (pl *Placer) BeginCycle(before reserve.Head) *Cycle {
	pl.markChanged()
	pl.reserve.SetHead(reserve.Head{})
	c := &Cycle{before: before}
	pl.UpdateFree(c)
	return c
}

// UpdateFree has a cycle consider the free memory of the GPUs again, after a launch.
func (pl *Placer) UpdateFree(c *Cycle) { c.fit = pl.freeSummary(c.favoured != nil) }
