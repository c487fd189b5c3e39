package runner

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	"carma/mapper/units"

	"carma/mapper"
	"carma/mapper/words"
	"carma/runner/api"
)

// ListGPUs returns the ledger with what the monitor last saw.
func (r *Runner) ListGPUs(ctx context.Context) ([]api.GPU, error) {
	var pages []mapper.GPU
	held := map[mapper.GPUID]mapper.TaskID{}
	var headroom units.Bytes
	err := r.look(ctx, func(s *mapper.State) {
		pages, headroom = s.GPUs(), s.Options().Headroom
		for _, g := range pages {
			held[g.ID] = s.KeptFor(g.ID)
		}
	})
	out := make([]api.GPU, 0, len(pages))
	for _, g := range pages {
		v := api.GPU{
			GPURef: api.GPURef{Index: g.Index, UUID: string(g.ID)}, Model: g.Model,
			Capacity: int64(g.Capacity), Reserved: int64(g.Reserved), Used: int64(g.Used), Foreign: int64(g.Foreign),
			Headroom: int64(headroom), SMACT: g.SMACT, SMOCC: g.SMOCC, DRAMA: g.DRAMA, Fault: g.Fault,
			HeldFor: int64(held[g.ID]), Tasks: []api.Resident{},
		}
		if g.Missing {
			v.Fault = words.Missing
		}
		v.Parent = r.found[g.ID].Parent
		if s, ok := r.monitor.reading(v.UUID); ok {
			v.PowerW, v.EnergyJ, v.TemperatureC, v.ECCErrors = s.PowerW, s.EnergyJ, s.TemperatureC, s.ECCErrors
			v.Metrics, v.Coarse, v.Warnings = s.Metrics, s.Coarse, s.Warnings
		}
		for _, p := range g.Residents {
			name := ""
			if rec, _ := r.book.get(p.Task); rec != nil {
				name = rec.Name
			}
			v.Tasks = append(v.Tasks, api.Resident{
				Task: int64(p.Task), Name: name, Grant: int64(p.Grant), Used: int64(p.Used), Peak: int64(p.Peak), Alone: p.Alone,
			})
		}
		out = append(out, v)
	}
	return out, err
}

// Why explains where a task stands.
func (r *Runner) Why(ctx context.Context, ref string) (api.Why, error) {
	rec, err := r.Find(ref)
	if err != nil {
		return api.Why{}, err
	}
	out := api.Why{Task: int64(rec.ID()), Now: r.Clock.Time()}
	var why mapper.Why
	known := false
	err = r.look(ctx, func(s *mapper.State) { why, known = s.Why(rec.ID()) })
	if err != nil {
		return out, err
	}
	if rec, err = r.Find(ref); err != nil { // as it is after the look
		return out, err
	}
	if !r.sees(ctx, rec) {
		why.Binding = unquoted(why.Binding)
	}
	rec = r.shown(ctx, rec)
	out.Phase = string(rec.Task.Phase)
	if !known || why.Position == 0 {
		held := ""
		if why.Rule != "" {
			held, out.ReasonCode = words.Why(why), string(why.Binding.Code)
		} else {
			out.ReasonCode = string(cmp.Or(stopping(&rec.Task), rec.Task.Reason).Code)
		}
		out.Summary = r.whyNot(rec, held)
		return out, nil
	}
	out.Phase, out.Position, out.Queue = string(why.Phase), why.Position, "main"
	out.Summary, out.ReasonCode = words.Why(why), string(why.Binding.Code)
	if why.Recovery {
		out.Queue = "recovery"
		out.Summary += again(&rec.Task)
	}
	for _, id := range why.Fits {
		ref := r.gpuRef(id)
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

var endings = map[mapper.Phase]string{mapper.Failed: "it has failed", mapper.Cancelled: "it was cancelled"}

// whyNot says why a task is in no queue; held is what the mapper keeps it for.
func (r *Runner) whyNot(rec *Record, held string) string {
	t := &rec.Task
	switch {
	case t.Phase == mapper.Succeeded:
		return "it has ended with exit code 0" + again(t)
	case t.Phase.Finished():
		return fmt.Sprintf("%s: %s", endings[t.Phase], words.Reason(t.Reason))
	case t.Phase == mapper.Stopping:
		return "it was asked to stop: " + words.Reason(t.StopReason)
	case t.Current() != nil:
		a := r.viewAttempt(t.ID, t.Current())
		where := ""
		for i, g := range a.GPUs {
			if i > 0 {
				where += ", "
			}
			where += strconv.Itoa(g.Index)
		}
		return fmt.Sprintf("it does not wait: attempt %d is %s on GPU %s with %s reserved on each", a.N, t.Phase, where, units.Bytes(a.Grant)) + again(t)
	}
	return cmp.Or(held, r.probing(t.ID), "its memory is being estimated")
}

// stopping is why a task was asked to stop that has not ended yet.
func stopping(t *mapper.Task) mapper.Reason {
	if t.Phase == mapper.Stopping {
		return t.StopReason
	}
	return mapper.Reason{}
}

// again says why a task that has had attempts needs another, or needed the
// latest; "" if the first was enough.
func again(t *mapper.Task) string {
	var why mapper.Reason
	for _, a := range t.Attempts {
		why = cmp.Or(a.Reason, why)
	}
	if !t.Phase.Finished() {
		why = cmp.Or(why, t.Reason)
	}
	switch {
	case why.Code == "":
		return ""
	case t.Phase.Finished():
		return "; it ran again because: " + words.Reason(why)
	}
	return "; it runs again because: " + words.Reason(why)
}
