package runner

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	"carma/internal/units"
	"carma/mapper"
	"carma/mapper/explain"
	"carma/mapper/model"
	"carma/mapper/words"
	"carma/runner/api"
	"carma/runner/control"
	"carma/runner/deviceaccess"
	"carma/runner/record"
	"carma/runner/rights"
)

// ListGPUs returns the ledger with the monitor's last readings.
func (r *Runner) ListGPUs(ctx context.Context) ([]api.GPU, error) {
	var pages []model.GPU
	held := map[model.GPUID]model.TaskID{}
	var reserved []model.Reservation
	away := map[model.GPUID][]api.Away{}
	var headroom units.Bytes
	err := r.loop.Look(ctx, func(s *mapper.State) {
		pages, headroom = s.GPUs(), s.Options().Headroom
		for _, g := range pages {
			held[g.ID] = s.ReservedFor(g.ID)
		}
		reserved = s.Reservations()
		suspended, _ := s.Suspended()
		for _, t := range suspended {
			for _, had := range t.Suspension.From {
				away[had.GPU] = append(away[had.GPU], r.suspendedView(t))
			}
		}
	})
	filter := r.authz.Filter(ctx) // names of tasks that the caller may not know of are left out
	for id := range away {
		for i := range away[id] {
			if rec, _ := r.records.Get(model.TaskID(away[id][i].Task)); rec != nil && !filter.Shows(rec) {
				away[id][i].Name = ""
			}
		}
	}
	out := make([]api.GPU, 0, len(pages))
	for _, g := range pages {
		v := api.GPU{
			GPURef: api.GPURef{Index: g.Index, UUID: string(g.ID)}, Model: g.Model,
			Capacity: int64(g.Capacity), Reserved: int64(g.Reserved), Used: int64(g.Used), Foreign: int64(g.OtherProcesses),
			Headroom: int64(headroom), SMACT: g.SMACT, SMOCC: g.SMOCC, DRAMA: g.DRAMA, Fault: g.FaultReason(), FaultLasts: g.Persistent != nil,
			HeldFor: int64(held[g.ID]), Tasks: []api.Resident{}, Closed: control.CordonView(g.Cordon), NVLink: g.Link, NUMANode: g.Socket,
			Suspend: string(g.Suspend), Suspended: away[g.ID],
		}
		for _, res := range reserved {
			if slices.Contains(res.GPUs, g.ID) {
				v.Reservations = append(v.Reservations, control.ReservationView(res, r.gpus))
			}
		}
		if g.Missing {
			v.Fault = words.Missing
		}
		v.Parent, v.Sharing = r.gpus.Devices()[g.ID].Parent, cmp.Or(string(g.Sharing), "mps")
		if s, ok := r.monitor.Reading(v.UUID); ok {
			v.PowerW, v.EnergyJ, v.TemperatureC, v.ECCErrors = s.PowerW, s.EnergyJ, s.TemperatureC, s.ECCErrors
			v.Metrics, v.Coarse, v.Warnings = s.Metrics, s.Coarse, s.Warnings
		}
		for _, p := range g.Residents {
			name := ""
			if rec, _ := r.records.Get(p.Task); rec != nil && filter.Shows(rec) {
				name = rec.Name
			}
			v.Tasks = append(v.Tasks, api.Resident{
				Task: int64(p.Task), Name: name, Grant: int64(p.Grant), Used: int64(p.Used), Peak: int64(p.Peak), Alone: p.Exclusive,
			})
		}
		out = append(out, v)
	}
	return out, err
}

// Why explains the state of a task.
func (r *Runner) Why(ctx context.Context, ref string) (api.Why, error) {
	rec, err := r.find.Find(ref)
	if err != nil {
		return api.Why{}, err
	}
	out := api.Why{Task: int64(rec.ID()), Now: r.Clock.Time()}
	var why explain.Why
	known := false
	err = r.loop.Look(ctx, func(s *mapper.State) {
		if why, known = s.Why(rec.ID()); known {
			out.Account = control.AccountOf(s, rec.User)
		}
	})
	if err != nil {
		return out, err
	}
	if rec, err = r.find.Find(ref); err != nil { // the record may have changed meanwhile
		return out, err
	}
	if !r.authz.May(ctx, rights.Output, rec) {
		why.Binding = record.UnquotedReason(why.Binding)
	}
	rec = r.authz.Shown(ctx, rec, rights.ListEnvironment)
	out.Phase = string(rec.Task.Phase)
	if known {
		out.Priority = rec.Task.Priority.String()
	}
	if !known || why.Position == 0 {
		held := ""
		if why.Rule != "" {
			held, out.ReasonCode = words.Why(why), string(why.Binding.Code)
		} else {
			out.ReasonCode = string(cmp.Or(stopping(&rec.Task), rec.Task.Reason).Code)
		}
		out.Summary = r.pendingText(rec, held)
		if rec.Task.Phase == model.Held {
			out.Start = r.expectedStart(ctx, rec.ID())
		}
		return out, nil
	}
	out.Phase, out.Position, out.Queue = string(why.Phase), why.Position, "main"
	out.Summary, out.ReasonCode = words.Why(why), string(why.Binding.Code)
	out.Start = r.expectedStart(ctx, rec.ID())
	if rec.Task.Suspension != nil {
		out.Queue, out.Summary = "recovery", r.suspensionText(&rec.Task, out.Summary)
	} else if why.Recovery {
		out.Queue = "recovery"
		out.Summary += again(&rec.Task)
	}
	for _, id := range why.Fits {
		ref := r.gpus.Ref(id)
		out.GPUs = append(out.GPUs, api.WhyGPU{GPURef: ref, Fits: true, Text: "fits"})
	}
	for _, rej := range why.Rejected {
		out.GPUs = append(out.GPUs, api.WhyGPU{
			GPURef: api.GPURef{Index: rej.Index, UUID: string(rej.GPU)}, Rule: string(rej.Rule), Text: words.OnGPU(rej),
		})
	}
	slices.SortFunc(out.GPUs, func(a, b api.WhyGPU) int { return cmp.Compare(a.Index, b.Index) })
	return out, nil
}

var endings = map[model.Phase]string{model.Failed: "it has failed", model.Cancelled: "it was cancelled"}

// pendingText returns why a task is in no queue, in words. held is the mapper's
// reason, if it has one.
func (r *Runner) pendingText(rec *record.Record, held string) string {
	t := &rec.Task
	switch {
	case t.Phase == model.Succeeded:
		if end := rec.Ends[t.Last().N]; end != nil && end.Remark != "" {
			return "it has ended with exit code 0; " + end.Remark + again(t)
		}
		return "it has ended with exit code 0" + again(t)
	case t.Phase.Finished():
		return fmt.Sprintf("%s: %s", endings[t.Phase], words.Reason(t.Reason))
	case t.Phase == model.Stopping:
		return "it was asked to stop: " + words.Reason(t.StopReason)
	case t.Suspension != nil:
		return r.suspensionText(t, "")
	case t.Current() != nil:
		a := r.viewAttempt(t.ID, t.Current())
		where := ""
		for i, g := range a.GPUs {
			if i > 0 {
				where += ", "
			}
			where += strconv.Itoa(g.Index)
		}
		if len(a.GPUs) == 0 {
			return fmt.Sprintf("it does not wait: attempt %d is %s, without a GPU", a.N, t.Phase) + again(t)
		}
		return fmt.Sprintf("it does not wait: attempt %d is %s on GPU %s with %s reserved on each", a.N, t.Phase, where, units.Bytes(a.Grant)) + deviceaccess.Why(t.Current().Devices, r.gpus.Text) + again(t)
	}
	return cmp.Or(held, r.probing(t.ID), "its memory is being estimated")
}

// stopping returns why a stopping task was asked to stop, or zero for other tasks.
func stopping(t *model.Task) model.Reason {
	if t.Phase == model.Stopping || t.Phase == model.Suspended {
		return t.StopReason
	}
	return model.Reason{}
}

// again returns why a task had more than one attempt, as the end of a sentence, or "" if it
// had only one.
func again(t *model.Task) string {
	var why model.Reason
	for _, a := range t.Attempts {
		why = cmp.Or(a.Reason, why)
	}
	if !t.Phase.Finished() {
		why = cmp.Or(why, t.Reason)
	}
	if t.Reason.Code == model.ReasonNotSuspended && !t.Phase.Finished() {
		return "; " + words.Reason(t.Reason)
	}
	switch {
	case why.Code == "":
		return ""
	case t.Phase.Finished():
		return "; it ran again because: " + words.Reason(why)
	}
	return "; it runs again because: " + words.Reason(why)
}
