package control

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"carma/internal/units"
	"carma/mapper"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/inventory"
	"carma/runner/loop"
	"carma/runner/record"
	"carma/runner/request"
	"carma/runner/rights"
)

// Reserve reserves GPUs, or memory on them, for a user or a group. Only administrators
// may call it.
func (c *Controller) Reserve(ctx context.Context, who request.Caller, q api.ReserveRequest) (api.Reservation, error) {
	if err := c.authz.AuthorizeServer(who, rights.Reserve, "for "+q.For, q.Why); err != nil {
		return api.Reservation{}, err
	}
	if err := checkReserve(q); err != nil {
		return api.Reservation{}, err
	}
	made := 0
	err := c.loop.Do(ctx, &loop.Change{Fresh: true, Vital: true, Events: func(now units.Instant) ([]model.Event, []*record.Record, error) {
		res := model.Reservation{Memory: units.Bytes(q.Memory), From: units.Instant(q.From.UnixNano()), Until: units.Instant(q.Until.UnixNano()), By: who.Name, Why: q.Why}
		if q.From.IsZero() {
			res.From = now
		}
		if res.Until <= max(now, res.From) {
			return nil, nil, request.Errorf(422, "the reservation would have ended before it begins; it is %s", now.Time().Format("2006-01-02 15:04"))
		}
		if group, ok := strings.CutPrefix(q.For, "@"); ok {
			res.Account = group
		} else {
			res.User = q.For
		}
		var err error
		if res.GPUs, err = c.toReserve(q, &res); err != nil {
			return nil, nil, err
		}
		made = c.loop.State().LastReservation() + 1
		return []model.Event{model.Reserved{At: now, Reservation: res}}, nil, nil
	}})
	if err != nil {
		return api.Reservation{}, err
	}
	all, err := c.Reservations(ctx)
	if i := slices.IndexFunc(all, func(v api.Reservation) bool { return v.ID == made }); i >= 0 {
		return all[i], err
	}
	return api.Reservation{ID: made}, err
}

// checkReserve refuses a request that makes no sense on any machine.
func checkReserve(q api.ReserveRequest) error {
	switch {
	case strings.TrimPrefix(q.For, "@") == "":
		return request.Errorf(422, "--for: name a user, or @group")
	case (q.Count > 0) == (len(q.GPUs) > 0):
		return request.Errorf(422, "name GPUs, or a number of them (--gpus 2); carma gpus lists them")
	case q.Until.IsZero() || q.Until.Year() > 2200 || q.From.Year() > 2200:
		return request.Errorf(422, "--to: say when it ends, for example --to 8:00")
	}
	if !there(q.For) {
		return request.Errorf(422, "--for %s: nobody has that name here; write a user, or @group", q.For)
	}
	return nil
}

// toReserve returns the GPUs of a reservation: the named ones, or the requested number of
// GPUs in service that have the fewest reservations at that time, then the fewest tasks.
// Only the loop calls it.
func (c *Controller) toReserve(q api.ReserveRequest, res *model.Reservation) ([]model.GPUID, error) {
	all := c.loop.State().GPUs()
	var ids []model.GPUID
	for _, name := range q.GPUs {
		id, err := gpuNamed(all, name)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	clashes := func(id model.GPUID) (n int) {
		for _, other := range c.loop.State().Reservations() {
			if slices.Contains(other.GPUs, id) && other.From < res.Until && res.From < other.Until && (other.Memory == 0 || res.Memory == 0) {
				n++
			}
		}
		return n
	}
	if q.Count > len(all) {
		return nil, request.Errorf(422, "--gpus %d: this machine has %d", q.Count, len(all))
	}
	if q.Count > 0 {
		all = slices.DeleteFunc(all, func(g model.GPU) bool { return g.Missing || g.FaultReason() != "" || g.Cordon != nil })
		if q.Count > len(all) {
			return nil, request.Errorf(409, "--gpus %d: only %d are in service", q.Count, len(all))
		}
		slices.SortStableFunc(all, func(a, b model.GPU) int {
			return cmp.Or(cmp.Compare(clashes(a.ID), clashes(b.ID)), cmp.Compare(len(a.Residents), len(b.Residents)), cmp.Compare(b.Index, a.Index))
		})
		for _, g := range all[:q.Count] {
			ids = append(ids, g.ID)
		}
	}
	for _, g := range c.loop.State().GPUs() {
		if most := g.Capacity - c.loop.State().Options().Headroom; slices.Contains(ids, g.ID) && res.Memory > most {
			return nil, request.Errorf(422, "--mem: GPU %d can give %s", g.Index, most)
		}
	}
	for _, id := range ids {
		if clashes(id) > 0 {
			return nil, request.Errorf(409, "GPU %d is reserved at that time already; carma reservations lists what is", c.gpus.Ref(id).Index)
		}
	}
	return ids, nil
}

// Unreserve ends a reservation. Only administrators may call it.
func (c *Controller) Unreserve(ctx context.Context, who request.Caller, id int) error {
	if err := c.authz.AuthorizeServer(who, rights.Unreserve, "reservation "+strconv.Itoa(id), ""); err != nil {
		return err
	}
	return c.loop.Do(ctx, &loop.Change{Fresh: true, Vital: true, Events: func(now units.Instant) ([]model.Event, []*record.Record, error) {
		if !slices.ContainsFunc(c.loop.State().Reservations(), func(v model.Reservation) bool { return v.ID == id }) {
			return nil, nil, request.Errorf(404, "there is no reservation %d; carma reservations lists them", id)
		}
		return []model.Event{model.Unreserved{At: now, ID: id, By: who.Name}}, nil, nil
	}})
}

// Reservations lists the reservations that have not ended, the earliest first.
func (c *Controller) Reservations(ctx context.Context) ([]api.Reservation, error) {
	list := []api.Reservation{}
	err := c.loop.Look(ctx, func(s *mapper.State) {
		for _, v := range s.Reservations() {
			list = append(list, ReservationView(v, c.gpus))
		}
	})
	return list, err
}

// ReservationView returns the API form of a reservation.
func ReservationView(v model.Reservation, gpus *inventory.GPUs) api.Reservation {
	out := api.Reservation{ID: v.ID, Memory: int64(v.Memory), For: v.User, From: v.From.Time(), Until: v.Until.Time(), By: v.By, Why: v.Why}
	if v.Account != "" {
		out.For = "@" + v.Account
	}
	for _, id := range v.GPUs {
		out.GPUs = append(out.GPUs, gpus.Ref(id))
	}
	slices.SortFunc(out.GPUs, func(a, b api.GPURef) int { return cmp.Compare(a.Index, b.Index) })
	return out
}
