package study

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"carma/configs/traces"
	"carma/configs/workloads"
	"carma/estimator"
	"carma/estimator/booking"
	"carma/internal/units"
	"carma/mapper/model"
	"carma/mapper/sim"
)

// Estimators lists the estimators of a replay. horus, faketensor and gpumemnet are the
// values published with the workloads. carma and computed:NAME are computed from the
// catalogue's networks.
var Estimators = append([]string{"catalogue", "oracle", "none", "declared", "horus", "faketensor", "gpumemnet"}, computedNames()...)

// noEstimate is the memory that the original CARMA allocates without an estimate.
const noEstimate = 40000 * units.MiB

// taskMaker turns traces into tasks of the simulator.
type taskMaker struct {
	catalogue booking.Catalogue
	method    string
	// asOriginal is set if a task without a published estimate gets noEstimate, or most if
	// that is less.
	asOriginal bool
	most       units.Bytes
	checkpoint time.Duration // of every task, or 0 for none
	know       Know
	distinct   bool // each task has its own kind
	// whole lists the workloads that get an exclusive GPU because no computed estimate fits
	// one. tasks fills it.
	whole []WholeGPU
}

// tasks returns the tasks of a trace. Results are cached, because large traces repeat few
// workloads and the catalogue searches by name.
func (m *taskMaker) tasks(t traces.Trace) ([]sim.Task, error) {
	type query struct {
		workload string
		gpus     int
		declared units.Bytes
	}
	known := map[query]sim.Task{}
	tasks := make([]sim.Task, len(t.Tasks))
	for i, in := range t.Tasks {
		q := query{in.Workload, in.GPUs, in.Mem}
		out, ok := known[q]
		if !ok {
			var err error
			if out, err = m.task(in, t.Campaign); err != nil {
				return nil, wrongf(m.hint(), "%s: task %d (%s): %v", t.Name, i+1, in.Workload, err)
			}
			known[q] = out
		}
		out.At, out.User = in.At, in.User
		if out.Priority, ok = priorityOf(in.Priority); !ok {
			return nil, wrongf("", "%s: task %d (%s): unknown priority %q", t.Name, i+1, in.Workload, in.Priority)
		}
		tasks[i] = m.know.before(out, m.method)
		if m.distinct {
			tasks[i] = alone(tasks[i], i)
		}
	}
	return tasks, nil
}

// priorityOf returns the priority for a trace's word; an empty word means normal.
func priorityOf(word string) (p model.Priority, ok bool) {
	for p = model.Low; p <= model.High; p++ {
		if p.String() == cmp.Or(word, model.Normal.String()) {
			return p, true
		}
	}
	return model.Normal, false
}

// task returns a task without its time, user and priority.
func (m *taskMaker) task(in traces.Task, campaign string) (sim.Task, error) {
	p, err := workloads.Find(in.Workload)
	if err != nil {
		return sim.Task{}, err // the trace was validated before
	}
	c, err := p.Campaign(campaign)
	if err != nil {
		return sim.Task{}, err
	}
	peaks, err := p.Peaks(campaign)
	if err != nil {
		return sim.Task{}, err
	}
	out := sim.Task{
		Name: in.Workload, Kind: in.Workload, Family: p.Model + " " + p.Dataset, GPUs: in.GPUs,
		SoloTime: c.RunTime, Context: workloads.Context(campaign), Checkpoint: m.checkpoint,
	}
	alone := booking.Loads(p)
	for g := range in.GPUs { // further GPUs equal the last measured one
		out.Memory = append(out.Memory, peaks[min(g, len(peaks)-1)])
		out.Loads = append(out.Loads, alone[min(g, len(alone)-1)])
	}
	out.Expected = m.catalogue.Expect(estimator.Query{Model: in.Workload, GPUs: in.GPUs})
	out.Estimate, err = m.estimate(in, p, campaign, slices.Max(out.Memory))
	return out, err
}

// estimate returns the memory estimate that the mapper gets.
func (m *taskMaker) estimate(in traces.Task, p workloads.Profile, campaign string, peak units.Bytes) (model.Estimate, error) {
	if method := computedMethod(m.method); method != nil {
		return m.computed(method, in, p, campaign)
	}
	published := units.Bytes(0)
	switch m.method {
	case "oracle":
		return model.Estimate{Memory: peak, Method: model.Method(m.method)}, nil
	case "none":
		return model.Estimate{Method: model.Method(m.method)}, nil
	case "declared":
		if in.Mem == 0 {
			return model.Estimate{}, fmt.Errorf("declares no memory")
		}
		return model.Estimate{Memory: in.Mem, Method: model.Method(m.method)}, nil
	case "horus":
		published = p.Estimates.Horus
	case "faketensor":
		published = p.Estimates.FakeTensor
	case "gpumemnet":
		published = p.Estimates.GPUMemNet
	default:
		e, err := m.catalogue.Estimate(estimator.Query{Declared: in.Mem, Model: booking.InCampaign(in.Workload, campaign), GPUs: in.GPUs})
		return model.Estimate{Memory: e.Memory, Point: e.Point, WholeGPU: e.WholeGPU, Method: model.Method(e.Method)}, err
	}
	if published == 0 && !m.asOriginal {
		return model.Estimate{}, fmt.Errorf("no estimate of %s was published for it", m.method)
	}
	if published == 0 {
		published = noEstimate
	}
	if m.asOriginal {
		published = min(published, m.most) // the original starts tasks on idle GPUs regardless of their estimate
	}
	return model.Estimate{Memory: published, Method: model.Method(m.method)}, nil
}

// hint describes how to replay a task that cannot be estimated.
func (m *taskMaker) hint() string {
	if m.method == "declared" {
		return "write mem: 12G beside it in the trace, or use --estimator catalogue"
	}
	return "use --estimator oracle or catalogue, or a preset such as EST-MAGM:" + m.method + ", which books 40000 MiB for it as the original does"
}
