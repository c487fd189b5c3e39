package study

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"carma/configs/traces"
	"carma/configs/workloads"
	"carma/estimator/booking"
	environments "carma/estimator/environment"
	"carma/estimator/evaluate"
	"carma/estimator/methods"
	"carma/estimator/networks/zoo"
	"carma/estimator/rivals"
	"carma/internal/units"
	"carma/mapper/model"
)

// computedPrefix begins the names of computed estimators that also have published
// estimates under their own names: computed:horus is carma's implementation of horus.
const computedPrefix = "computed:"

// computedNames returns the estimators that are computed from the catalogue's networks.
// carma's own has no published figures, so it needs no prefix. computedNames does not
// search for libraries, because every command calls it.
func computedNames() []string {
	var list []string
	for _, m := range rivals.All(&methods.Carma{}) {
		if m.Name() == "carma" {
			list = append(list, "carma")
			continue
		}
		list = append(list, computedPrefix+m.Name())
	}
	return list
}

// computedMethod returns the computed method with the given name, or nil.
func computedMethod(name string) methods.Method {
	if name != "carma" && !strings.HasPrefix(name, computedPrefix) {
		return nil
	}
	m, err := methods.Find(rivals.All(booking.Own()), strings.TrimPrefix(name, computedPrefix))
	if err != nil {
		panic(err) // a bug of carma: the name was validated
	}
	return m
}

// WholeGPU is a workload to which a computed estimate gives an exclusive GPU.
type WholeGPU struct {
	Workload string `json:"workload"`
	Why      string `json:"why"`
}

// computed estimates a task from its network, with an upper bound at 95 %, without any
// measurement of the task. The memory of a process before its first tensor comes from the
// campaign, because it depends on the server's software.
func (m *taskMaker) computed(method methods.Method, in traces.Task, p workloads.Profile, campaign string) (model.Estimate, error) {
	whole := func(why string) (model.Estimate, error) {
		w := WholeGPU{in.Workload, why}
		if !slices.Contains(m.whole, w) {
			m.whole = append(m.whole, w)
		}
		return model.Estimate{WholeGPU: true, Large: true, Method: model.Method(m.method)}, nil
	}
	name, with := evaluate.Measured(p.Model, p.Dataset, p.BatchSize, in.GPUs)
	if !zoo.Known(name) {
		return whole("the catalogue has no network of it")
	}
	config, err := zoo.Build(name, with)
	if err != nil {
		return model.Estimate{}, err
	}
	env, err := environments.Named(environments.Default)
	if err != nil {
		return model.Estimate{}, err
	}
	env.Context = int64(workloads.Context(cmp.Or(campaign, workloads.DefaultCampaign)))
	a, err := method.Estimate(methods.Subject{Config: config, Environment: &env.Environment, Confidence: 0.95, Capacity: env.Capacity})
	if err != nil {
		no := methods.ErrNotApplicable.Error()
		return whole(strings.TrimSuffix(strings.TrimPrefix(err.Error(), no+": "), ": "+no))
	}
	upper := units.Bytes(a.Upper)
	if m.most > 0 && upper > m.most {
		return whole(fmt.Sprintf("the estimate, %s, is more than a GPU has", upper))
	}
	return model.Estimate{Memory: upper, Point: units.Bytes(a.Point), Method: model.Method(m.method)}, nil
}
