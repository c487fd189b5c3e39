package preempt

import (
	"carma/mapper/ledger"
	"carma/mapper/model"
)

// Evacuate moves tasks off cordoned GPUs with Cordon.Move to GPUs with room. It runs
// after waiting tasks were placed. It moves one task at a time for each kind of card, so
// that no task waits for room that another one has taken. A task that cannot be moved
// continues.
func (pre *Preempter) Evacuate() {
	for _, g := range pre.GPUList() {
		if g.Cordon == nil || !g.Cordon.Move || pre.movesFrom(g) {
			continue
		}
		why := model.Reason{Code: model.ReasonDrained, Name: g.Cordon.By, Text: g.Cordon.Why, GPU: g.Index}
		for i := range g.Residents {
			t := pre.TaskByID(g.Residents[i].Task)
			if pre.canSuspend(t, why.Code) && pre.lookForRest(t) && pre.fitsElsewhere(t) && pre.displace(displacement{t, why, suspendOnly}) {
				break
			}
		}
	}
}

// lookForRest reports whether a task has run long enough to be suspended again. If not,
// it sets a timer for that instant.
func (pre *Preempter) lookForRest(t *model.Task) bool {
	at := pre.RestedAt(t.Last())
	if at > pre.Now() {
		pre.SetTimer(at, ledger.Timer{})
	}
	return at <= pre.Now()
}

// movesFrom reports whether a task is being moved off a cordoned GPU of g's model and
// machine.
func (pre *Preempter) movesFrom(g *model.GPU) bool {
	return pre.AnyTask(func(t *model.Task) bool {
		a := t.Suspension
		if a == nil || a.Reason.Code != model.ReasonDrained || t.StopReason.Code != "" {
			return false
		}
		had := t.Last().Grants[0].GPU
		if a.Since > 0 {
			had = a.From[0].GPU
		}
		from := pre.GPU(had)
		return from != nil && from.Model == g.Model && from.Node == g.Node
	})
}

// fitsElsewhere reports whether another GPU would take a running task now.
func (pre *Preempter) fitsElsewhere(t *model.Task) bool {
	probe := pre.asSuspended(t)
	var fitting []*model.GPU
	for _, g := range pre.GPUList() {
		if g.ID != t.Current().Grants[0].GPU && pre.placer.Reject(probe, g) == "" {
			fitting = append(fitting, g)
		}
	}
	return pre.placer.Choose(probe, fitting) != nil
}
