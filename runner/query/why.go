package query

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

// Why explains the state of a task.
func (r *Tasks) Why(ctx context.Context, ref string) (api.Why, error) {
	rec, err := r.c.Find.Find(ref)
	if err != nil {
		return api.Why{}, err
	}
	out := api.Why{Task: int64(rec.ID()), Now: r.c.Clock.Time()}
	var why explain.Why
	known := false
	err = r.c.Loop.Look(ctx, func(s *mapper.State) {
		if why, known = s.Why(rec.ID()); known {
			out.Account = control.AccountOf(s, rec.User)
		}
	})
	if err != nil {
		return out, err
	}
	if rec, err = r.c.Find.Find(ref); err != nil { // the record may have changed meanwhile
		return out, err
	}
	if !r.c.Authz.May(ctx, rights.Output, rec) {
		why.Binding = record.UnquotedReason(why.Binding)
	}
	rec = r.c.Authz.Shown(ctx, rec, rights.ListEnvironment)
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
			out.Start = r.ExpectedStart(ctx, rec.ID())
		}
		return out, nil
	}
	out.Phase, out.Position, out.Queue = string(why.Phase), why.Position, "main"
	out.Summary, out.ReasonCode = words.Why(why), string(why.Binding.Code)
	out.Start = r.ExpectedStart(ctx, rec.ID())
	if rec.Task.Suspension != nil {
		out.Queue, out.Summary = "recovery", r.suspensionText(&rec.Task, out.Summary)
	} else if why.Recovery {
		out.Queue = "recovery"
		out.Summary += again(&rec.Task)
	}
	for _, id := range why.Fits {
		ref := r.c.GPUs.Ref(id)
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

// pendingText returns why a task is in no queue, in words. held is the mapper's
// reason, if it has one.
func (r *Tasks) pendingText(rec *record.Record, held string) string {
	t := &rec.Task
	switch {
	case t.Phase == model.Succeeded:
		if end := rec.Ends[t.Last().N]; end != nil && end.Remark != "" {
			return "it has ended with exit code 0; " + end.Remark + again(t)
		}
		return "it has ended with exit code 0" + again(t)
	case t.Phase.Finished():
		return fmt.Sprintf("%s: %s", words.Ended(t.Phase), words.Reason(t.Reason))
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
		return fmt.Sprintf("it does not wait: attempt %d is %s on GPU %s with %s reserved on each", a.N, t.Phase, where, units.Bytes(a.Grant)) + deviceaccess.Why(t.Current().Devices, r.c.GPUs.Text) + again(t)
	}
	return cmp.Or(held, r.c.Probing(t.ID), "its memory is being estimated")
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
