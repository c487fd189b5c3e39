package control

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/record"
	"carma/runner/request"
	"carma/runner/rights"
)

// clauseSuspended is the reason why a suspended task can resume only on some GPUs.
const clauseSuspended = "it can to the one that it had, and to others of that model on this machine where the driver can move it"

// Pin pins a task to GPUs, or removes the pin.
func (c *Controller) Pin(ctx context.Context, who request.Caller, ref string, q api.PinRequest) (*record.Record, error) {
	return c.alter(ctx, who, rights.Pin, ref, strings.Join(q.GPUs, " "), func(now units.Instant, t *model.Task, _ *record.Record) (model.Event, *record.Record, error) {
		if q.Any == (len(q.GPUs) > 0) {
			return nil, nil, request.Errorf(422, "name the GPUs that it is to go to, or --any; carma gpus lists them")
		}
		ev := model.Pinned{At: now, Task: t.ID, By: who.Name, GPUs: []model.GPUID{}}
		if !q.Any {
			var err error
			if ev.GPUs, err = c.GoesTo(q.GPUs, fmt.Sprintf("task %d", t.ID), t.GPUs, t.NextGrant); err != nil {
				return nil, nil, err
			}
		}
		if t.Phase == model.Suspended && !q.Any && !slices.ContainsFunc(ev.GPUs, func(id model.GPUID) bool { return c.loop.State().ComesBackTo(t.ID, id) }) {
			return nil, nil, request.Errorf(409, "task %d is suspended and cannot come back to these GPUs: %s; carma requeue %d stops it, and it can start there anew", t.ID, clauseSuspended, t.ID)
		}
		if a := t.Current(); a != nil && !q.Any && !q.Stop && slices.ContainsFunc(a.Grants, func(g model.Grant) bool { return !slices.Contains(ev.GPUs, g.GPU) }) {
			return nil, nil, request.Errorf(409, "task %d is %s; to move it stops it, and it starts again from its beginning, or from its own checkpoint: carma move --yes %d GPU", t.ID, t.Phase, t.ID)
		}
		return ev, nil, nil
	})
}

// GoesTo finds the GPUs that a task is pinned to, by index or UUID, without duplicates. It
// refuses missing GPUs, and GPUs on which a task with this number of GPUs and this memory could
// never run. Only the loop calls it.
func (c *Controller) GoesTo(names []string, task string, gpus int, need units.Bytes) (ids []model.GPUID, err error) {
	all := c.loop.State().GPUs()
	for _, name := range names {
		id, err := gpuNamed(all, name)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	if len(ids) < gpus {
		return nil, request.Errorf(422, "%s needs %d GPUs; named: %d", task, gpus, len(ids))
	}
	for _, g := range all {
		if most := g.Capacity - c.loop.State().Options().Headroom; slices.Contains(ids, g.ID) && need > most {
			return nil, request.Errorf(422, "%s needs %s, and GPU %d can give %s", task, need, g.Index, most)
		}
		if gpus > 1 && g.MIG && slices.Contains(ids, g.ID) {
			return nil, request.Errorf(422, "%s is on %d GPUs, and GPU %d is a MIG instance, of which a program can use one at a time; name whole GPUs", task, gpus, g.Index)
		}
	}
	return ids, nil
}
