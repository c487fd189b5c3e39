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
	a, err := m.Estimate(methods.Subject{Config: c, Environment: &p.environment.Environment, Capacity: p.environment.Capacity})
	if errors.Is(err, methods.ErrNotApplicable) {
		return estimator.Estimate{WholeGPU: true, Method: estimator.WholeGPUs, Detail: fmt.Sprintf("estimator %s says nothing of %s, so it gets whole GPUs: %v", name, c.Name, err)}, nil
	}
	if err != nil {
		return estimator.Estimate{}, err
	}
	return p.booked(name, c, a), nil
}

// booked is what is booked for an answer.
func (p *predictor) booked(name string, c *models.Config, a methods.Answer) estimator.Estimate {
	what := fmt.Sprintf("%s at batch size %d by estimator %s (%s)", c.Name, c.Train.Batch, name, p.environment.Name)
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
