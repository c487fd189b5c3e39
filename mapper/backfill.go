package mapper

import (
	"carma/mapper/model"
)

// Tasks on one GPU that the driver can suspend may backfill GPUs that are reserved for a
// task on several GPUs, even beyond the time of the reservation. They are suspended when
// the other task could start without them.

// backfillsFor returns the task for which the GPU is reserved, or 0 if it is reserved for
// none, or for one that t may overtake or ends before.
func (pl *placer) backfillsFor(t *model.Task, gpus []*model.GPU) model.TaskID {
	if !pl.Options().FillHeld || len(gpus) != 1 {
		return 0
	}
	g := gpus[0]
	if id := pl.reserve.ReservedForHead(g); id != 0 && id != t.ID && pl.overtakesOn(t, id, g) {
		return id
	}
	return 0
}
