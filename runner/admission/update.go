package admission

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/machine"
	"carma/runner/record"
	"carma/runner/request"
	"carma/runner/rights"
	"carma/runner/taskkind"
	"carma/runner/textcheck"
)

// Update changes the request of a task.
func (a *Controller) Update(ctx context.Context, who request.Caller, ref string, u api.Update) (*record.Record, error) {
	rec, err := a.cfg.Find.Find(ref)
	if err != nil {
		return nil, err
	}
	if err := a.cfg.Authz.Authorize(who, rights.Update, rec, changeText(u)); err != nil {
		return nil, err
	}
	if who.Subject != nil && u.After != nil {
		if err := a.cfg.Authz.CheckDependencies(ctx, *u.After, a.cfg.Find.Referred); err != nil {
			return nil, err
		}
	}
	n := *rec
	n.Submit = updated(rec.Submit, u)
	if u.Name != nil {
		n.Name = *u.Name
	}
	asked := n.Submit
	if u.Priority == nil { // a priority set by an admin stays
		asked.Priority = ""
	}
	if err := cmp.Or(a.checkSubmit(who, asked), textcheck.Submit(n.Submit), a.cfg.Settings().Bounds.Check(n.Submit)); err != nil {
		return nil, err
	}
	if u.GPUs != nil {
		if err := fitChange(&n.Submit); err != nil {
			return nil, err
		}
	}
	c := &candidate{rec: &n}
	if u.Shapes() {
		if c.est, c.expected, err = a.Predict(ctx, &n, nil); err != nil {
			return nil, request.Errorf(422, "--est-model: %v", err)
		}
	}
	rec, err = a.cfg.Control.Altered(ctx, rec.ID(), func(now units.Instant, t *model.Task, rec *record.Record) (model.Event, *record.Record, error) {
		if err := a.mayUpdate(t, rec, u); err != nil {
			return nil, nil, err
		}
		is := *rec
		is.Submit, is.Name = updated(rec.Submit, u), n.Name
		what, err := a.changeOf(t, &is, u, c)
		if err != nil {
			return nil, nil, err
		}
		a.names[is.Name] = true
		return model.TaskUpdated{At: now, Task: t.ID, By: who.Name, Change: what}, &is, nil
	})
	if err == nil && u.Hosts() {
		err = a.cfg.Resized(ctx, rec.ID())
	}
	return rec, err
}

// changeText names the fields of an update with their values, for the audit log.
func changeText(u api.Update) string {
	u.Network = nil // up to 64 KiB
	text, err := json.Marshal(u)
	if err != nil {
		return ""
	}
	return string(text)
}

// mayUpdate refuses changes that are no longer possible for a task.
func (a *Controller) mayUpdate(t *model.Task, rec *record.Record, u api.Update) error {
	switch {
	case u.Shapes() && t.Alive() != nil:
		return request.Errorf(409, "task %d is %s; what it has booked can be changed while it waits: carma requeue --hold %d, then update and release it", t.ID, t.Phase, t.ID)
	case u.Shapes() && t.Phase == model.Estimating:
		return request.Errorf(409, "the memory of task %d is being estimated; try again when that has ended", t.ID)
	case u.After != nil && len(t.Attempts) > 0:
		return request.Errorf(409, "task %d has been launched; it waits for no other task any more", t.ID)
	case u.Hosts() && a.mayResize(t) != nil:
		return a.mayResize(t)
	case u.Name != nil && *u.Name != rec.Name:
		return a.nameFree("--name", *u.Name)
	}
	return nil
}

// changeOf returns a change in the mapper's form. c has the predictions for the changed
// task.
func (a *Controller) changeOf(t *model.Task, rec *record.Record, u api.Update, c *candidate) (model.TaskUpdate, error) {
	what := model.TaskUpdate{Retries: u.Retries, TimeLimit: u.TimeLimit, Slot: u.Slot, GPUs: u.GPUs, Exclusive: u.Exclusive}
	if u.Priority != nil {
		what.Priority = new(priorities[*u.Priority])
	}
	if u.After != nil {
		p := batchPlan{Controller: a, parts: map[string][]model.TaskID{}}
		after, err := p.after(rec.Submit, t.ID)
		if err != nil {
			return what, err
		}
		for _, d := range after {
			if d.Task >= t.ID {
				return what, request.Errorf(422, "--after: task %d was submitted after task %d; a task can only wait for earlier ones", d.Task, t.ID)
			}
		}
		what.After = &model.After{Tasks: after}
	}
	req := t.Request
	if u.Hosts() {
		req.HostMem, req.HostReserve, req.CPUs = machine.Asked(&rec.Submit)
		what.Host = &model.HostAsk{Memory: req.HostMem, Reserve: req.HostReserve, CPUs: req.CPUs}
	}
	if !u.Shapes() {
		if u.Hosts() && t.Phase != model.Estimating {
			return what, cmp.Or(impossible(a.cfg.Loop.State().Check(req, t.Estimate), t.Estimate.Method == model.Declared), a.canResize(t, *what.Host))
		}
		return what, nil
	}
	if t.NoGPU {
		return what, request.Errorf(422, "task %d runs without a GPU; memory of GPUs and their number cannot be changed. carma rerun submits it again, with --gpus", t.ID)
	}
	req.GPUs, req.Exclusive, req.Slot = rec.Submit.GPUs, rec.Submit.Exclusive, rec.Submit.Slot
	est, err := a.possible(req, c.est)
	if err != nil {
		return what, err
	}
	rec.Detail = est.Detail
	what.Estimate, what.Expected = new(Booking(est)), &c.expected
	what.Kind, what.Program = new(taskkind.Kind(rec)), new(taskkind.Program(rec))
	return what, nil
}

// updated returns a submission with the changes of an update.
func updated(s api.Submit, u api.Update) api.Submit {
	set(&s.Priority, u.Priority)
	set(&s.Retries, u.Retries)
	set(&s.TimeLimit, u.TimeLimit)
	set(&s.Slot, u.Slot)
	set(&s.Mem, u.Mem)
	if u.EstModel != nil { // facts about the other model are dropped
		s.EstModel, s.Network, s.Read = *u.EstModel, u.Network, nil
	}
	s.ChangeTraining(u.Train)
	set(&s.BatchSize, u.BatchSize)
	if set(&s.GPUs, u.GPUs); len(s.GPUIDs) < s.GPUs {
		s.GPUIDs = nil // the mapper drops them too
	}
	set(&s.Exclusive, u.Exclusive)
	set(&s.HostMem, u.HostMem)
	set(&s.HostReserve, u.HostReserve)
	set(&s.CPUs, u.CPUs)
	set(&s.CPUsReserve, u.CPUsReserve)
	set(&s.After, u.After)
	set(&s.Name, u.Name)
	if len(u.Labels)+len(u.Unlabel) > 0 {
		labels := maps.Clone(s.Labels)
		if labels == nil {
			labels = map[string]string{}
		}
		maps.Copy(labels, u.Labels)
		maps.DeleteFunc(labels, func(key, _ string) bool { return slices.Contains(u.Unlabel, key) })
		s.Labels = labels
	}
	return s
}

// set replaces a value, if there is a new one.
func set[T any](to *T, from *T) {
	if from != nil {
		*to = *from
	}
}
