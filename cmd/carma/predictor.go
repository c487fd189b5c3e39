package main

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"carma/configs/models"
	"carma/configs/nearest"
	"carma/estimator"
	environments "carma/estimator/environment"
	"carma/estimator/figures"
	"carma/estimator/methods"
	"carma/mapper"
)

// predictor estimates tasks for the daemon: what was measured of a workload
// or of its model, else what an estimator makes of the model's layers.
type predictor struct {
	catalogue
	standard    string
	environment environments.Environment
	methods     []methods.Method
}

// newPredictor returns one that asks standard where a task names no estimator.
func newPredictor(standard, environment string) (*predictor, error) {
	env, err := environments.Named(environment)
	if err != nil {
		return nil, usagef("", "environment: %v", err)
	}
	p := &predictor{newCatalogue(), standard, env, allMethods()}
	if _, err := methods.Find(p.methods, standard); err != nil {
		return nil, usagef("", "estimator: %v", err)
	}
	return p, nil
}

// Estimate answers q. Measured workloads are part of estimator carma; any
// other is asked alone.
func (p *predictor) Estimate(q estimator.Query) (estimator.Estimate, error) {
	name := cmp.Or(q.Estimator, p.standard)
	if q.Declared == 0 && q.Model == "" && q.Few != (estimator.Few{}) {
		return p.few(name, q)
	}
	if q.Declared > 0 || q.Model == "" {
		return p.catalogue.Estimate(q)
	}
	if name == "carma" {
		if e, err := p.catalogue.Estimate(q); err == nil && !e.WholeGPU || !zoo.known(q.Model) {
			return e, withNetworks(err)
		}
	}
	m, err := methods.Find(p.methods, name)
	if err != nil {
		return estimator.Estimate{}, err
	}
	c, err := networkOf(q)
	if err != nil {
		return estimator.Estimate{}, err
	}
	return p.ask(m, methods.Subject{Config: c}, c.Name, c.Train.Batch)
}

// few answers for a model of which only a few figures are known.
func (p *predictor) few(name string, q estimator.Query) (estimator.Estimate, error) {
	m, err := methods.Find(p.methods, name)
	if err != nil {
		return estimator.Estimate{}, err
	}
	f := figures.Figures{Family: models.Family(q.Few.Family), Params: q.Few.Params, Input: q.Few.Input, Layers: q.Few.Layers, Batch: q.Batch, GPUs: q.GPUs}
	if err := f.Check(); err != nil {
		return estimator.Estimate{}, err
	}
	e, err := p.ask(m, methods.Subject{Figures: &f}, fmt.Sprintf("unknown %s of %d parameters", f.Family, f.Params), q.Batch)
	if most := mapper.Bytes(p.environment.Capacity); most > 0 && e.Memory >= most {
		return estimator.Estimate{WholeGPU: true, Method: estimator.WholeGPUs, Detail: e.Detail + ": the bound is more than such a GPU has, so it gets whole GPUs; --mem lets it share"}, err
	}
	e.Loose = true
	return e, err
}

// ask has a method answer for the daemon's environment.
func (p *predictor) ask(m methods.Method, s methods.Subject, model string, batch int) (estimator.Estimate, error) {
	s.Environment, s.Capacity = &p.environment.Environment, p.environment.Capacity
	a, err := m.Estimate(s)
	if errors.Is(err, methods.ErrNotApplicable) {
		return estimator.Estimate{WholeGPU: true, Method: estimator.WholeGPUs, Detail: fmt.Sprintf("estimator %s says nothing of %s, so it gets whole GPUs: %v", m.Name(), model, err)}, nil
	}
	if err != nil {
		return estimator.Estimate{}, err
	}
	return p.booked(fmt.Sprintf("%s at batch size %d by estimator %s (%s)", model, batch, m.Name(), p.environment.Name), m.Name(), a), nil
}

// booked is what is booked for an answer; what says of what and by whom.
func (p *predictor) booked(what, name string, a methods.Answer) estimator.Estimate {
	if p.environment.Capacity > 0 && a.Point >= p.environment.Capacity {
		return estimator.Estimate{WholeGPU: true, Method: estimator.WholeGPUs, Detail: what + ": more than such a GPU has, so it gets whole GPUs; --mem lets it share"}
	}
	upper := max(mapper.Bytes(a.Upper), mapper.Bytes(a.Point))
	return estimator.Estimate{
		Memory: upper, Point: mapper.Bytes(a.Point), Method: name,
		Detail: fmt.Sprintf("%s: %s, %s booked", what, mapper.Bytes(a.Point), upper),
	}
}

// networkOf builds the network a query names.
func networkOf(q estimator.Query) (*models.Config, error) {
	if !zoo.known(q.Model) {
		return nil, withNetworks(&estimator.UnknownModelError{Name: q.Model, Nearest: nearest.Near(q.Model, zoo.names())})
	}
	o := models.Overrides{Batch: q.Batch}
	if q.GPUs > 1 {
		o.GPUs, o.Parallel = q.GPUs, models.DDP
	}
	return zoo.build(q.Model, o)
}

// withNetworks adds the catalogue of networks to the names that an unknown one
// may be a misspelling of.
func withNetworks(err error) error {
	unknown, ok := errors.AsType[*estimator.UnknownModelError](err)
	if !ok || len(unknown.Nearest) > 0 {
		return err
	}
	return &estimator.UnknownModelError{Name: unknown.Name, Nearest: nearest.Near(strings.ToLower(unknown.Name), zoo.names())}
}
