package attempt

import (
	"cmp"

	"carma/mapper/model"
)

// Detach removes a task from its GPUs, or from its queue.
func (at *Attempts) Detach(t *model.Task) {
	switch {
	case t.Phase.Placed():
		a := t.Current()
		a.Ended = cmp.Or(a.Ended, at.Now())
		at.users.Release(t)
		at.ReleaseHost(t, a)
		for _, grant := range a.Grants {
			at.RemoveFrom(at.GPU(grant.GPU), t.ID)
		}
		at.EndSuspension(t, a)
	case t.Phase == model.Suspended:
		if t.Waiting() {
			at.lifecycle.Dequeue(t)
		}
		a := t.Last()
		a.Ended = cmp.Or(a.Ended, at.Now())
		at.DropResidue(t)
		at.ReleaseHost(t, a)
		at.EndSuspension(t, a)
	case t.Waiting():
		at.lifecycle.Dequeue(t)
	}
}

// RemoveFrom removes a task from a GPU.
func (at *Attempts) RemoveFrom(g *model.GPU, id model.TaskID) {
	g.Remove(id)
	at.predictor.TasksChanged([]*model.GPU{g})
	if g.Idle() {
		// The last samples were of tasks that have ended.
		g.SMACT, g.SMOCC, g.DRAMA = 0, 0, 0
		at.placer.ForgetMissing(g)
	}
}
