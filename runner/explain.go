package runner

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	"carma/mapper"
	"carma/runner/api"
)

// ListGPUs returns the ledger with what the monitor last saw.
func (r *Runner) ListGPUs(ctx context.Context) ([]api.GPU, error) {
	var pages []mapper.GPU
	held := map[mapper.GPUID]mapper.TaskID{}
	var headroom mapper.Bytes
	err := r.look(ctx, func(s *mapper.State) {
		pages, headroom = s.GPUs(), s.Options().Headroom
		for _, g := range pages {
			held[g.ID] = s.HeldFor(g.ID)
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
			v.Fault = "not found on this machine"
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
	out.Phase = string(rec.Task.Phase)
	if !known || why.Position == 0 {
		held := ""
		if why.Rule != "" {
			held = why.Binding
		}
		out.Summary = r.whyNot(rec, held)
		return out, nil
	}
	out.Phase, out.Position, out.Queue, out.Summary = string(why.Phase), why.Position, "main", why.Binding
	if why.Recovery {
		out.Queue = "recovery"
		out.Summary += "; it runs again because: " + rec.Task.Reason
	}
	for _, id := range why.Fits {
		ref := r.gpuRef(id)
		out.GPUs = append(out.GPUs, api.WhyGPU{GPURef: ref, Fits: true, Text: fmt.Sprintf("GPU %d fits", ref.Index)})
	}
	for _, rej := range why.Rejected {
		out.GPUs = append(out.GPUs, api.WhyGPU{
			GPURef: api.GPURef{Index: rej.Index, UUID: string(rej.GPU)}, Rule: string(rej.Rule), Text: rej.String(),
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
		return "it has ended with exit code 0"
	case t.Phase.Finished():
		return fmt.Sprintf("%s: %s", endings[t.Phase], t.Reason)
	case t.Phase == mapper.Stopping:
		return "it was asked to stop: " + t.StopReason
	case t.Current() != nil:
		a := r.viewAttempt(t.ID, t.Current())
		where := ""
		for i, g := range a.GPUs {
			if i > 0 {
				where += ", "
			}
			where += strconv.Itoa(g.Index)
		}
		return fmt.Sprintf("it does not wait: attempt %d is %s on GPU %s with %s reserved on each", a.N, t.Phase, where, mapper.Bytes(a.Grant))
	}
	return cmp.Or(held, r.probing(t.ID), "its memory is being estimated")
}
