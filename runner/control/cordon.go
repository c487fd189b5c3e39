package control

import (
	"context"
	"strconv"
	"strings"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/loop"
	"carma/runner/record"
	"carma/runner/request"
	"carma/runner/rights"
)

// CloseGPUs drains GPUs, or uncordons them. Drained GPUs keep their tasks and get no new
// ones. A request for all GPUs does not shorten longer drains. Only administrators may
// call it.
func (c *Controller) CloseGPUs(ctx context.Context, who request.Caller, q api.CloseRequest) error {
	if err := c.authz.AuthorizeServer(who, rights.DrainGPUs, closedObject(q), closedDetail(q)); err != nil {
		return err
	}
	if q.All == (len(q.GPUs) > 0) {
		return request.Errorf(422, "name GPUs, or all; carma gpus lists them")
	}
	if q.Move && q.Open {
		return request.Errorf(422, "move is for GPUs that are drained; leave it out to open them")
	}
	var ids []model.GPUID
	err := c.loop.Do(ctx, &loop.Change{Fresh: true, Vital: true, Events: func(now units.Instant) ([]model.Event, []*record.Record, error) {
		all, to := c.loop.State().GPUs(), closure(now, who, q)
		for _, g := range all {
			if q.All && !outlasts(g.Cordon, to) {
				ids = append(ids, g.ID)
			}
		}
		for _, name := range q.GPUs {
			id, err := gpuNamed(all, name)
			if err != nil {
				return nil, nil, err
			}
			ids = append(ids, id)
		}
		return []model.Event{model.GPUsCordoned{At: now, GPUs: ids, Closure: to}}, nil, nil
	}})
	if err == nil && q.Open {
		c.gpus.Forgive(ctx, ids)
		c.reread()
	}
	return err
}

// outlasts reports whether the cordon was ends later than other, and also moves tasks if
// other does.
func outlasts(was, other *model.Cordon) bool {
	if was == nil || other == nil || other.Until == 0 || other.Move && !was.Move {
		return false
	}
	return was.Until == 0 || was.Until > other.Until
}

// PauseLaunching pauses all launches, or resumes them. Only administrators may call it.
func (c *Controller) PauseLaunching(ctx context.Context, who request.Caller, q api.CloseRequest) error {
	if err := c.authz.AuthorizeServer(who, rights.Pause, "", closedDetail(q)); err != nil {
		return err
	}
	if q.Move {
		return request.Errorf(422, "move is for GPUs: what runs goes on while launching is paused; carma drain --move moves it")
	}
	return c.loop.Do(ctx, &loop.Change{Fresh: true, Vital: true, Events: func(now units.Instant) ([]model.Event, []*record.Record, error) {
		return []model.Event{model.LaunchingPaused{At: now, Closure: closure(now, who, q)}}, nil, nil
	}})
}

// closedObject names the GPUs of a request, for the audit log.
func closedObject(q api.CloseRequest) string {
	if q.All {
		return "all GPUs"
	}
	return "GPU " + strings.Join(q.GPUs, " ")
}

// closedDetail describes the effect of a request, for the audit log.
func closedDetail(q api.CloseRequest) string {
	switch {
	case q.Open:
		return "end"
	case q.Move:
		return strings.TrimSpace("move " + q.Why)
	}
	return q.Why
}

// closure returns the cordon that a request asks for, or nil if the request ends it.
func closure(now units.Instant, who request.Caller, q api.CloseRequest) *model.Cordon {
	if q.Open {
		return nil
	}
	c := model.Cordon{By: who.Name, Why: q.Why, Move: q.Move}
	if q.For > 0 {
		c.Until = now.Add(q.For)
	}
	return &c
}

// gpuNamed finds a GPU by its index or UUID.
func gpuNamed(all []model.GPU, name string) (model.GPUID, error) {
	index, err := strconv.Atoi(name)
	for _, g := range all {
		if string(g.ID) == name || err == nil && g.Index == index {
			return g.ID, nil
		}
	}
	return "", request.Errorf(404, "no GPU %s; carma gpus lists them", name)
}

// CordonView returns the API form of a cordon, or nil for none.
func CordonView(c *model.Cordon) *api.Closure {
	if c == nil {
		return nil
	}
	v := api.Closure{By: c.By, Why: c.Why, Since: c.Since.Time(), Move: c.Move}
	if c.Until > 0 {
		v.Until = c.Until.Time()
	}
	return &v
}
