package booking

import (
	"errors"
	"fmt"
	"strings"

	"carma/mapper/units"

	"carma/configs/models"
	"carma/configs/nearest"
	"carma/estimator"
	environments "carma/estimator/environment"
	"carma/estimator/figures"
	"carma/estimator/methods"
	"carma/estimator/networks/zoo"
)

// Predictor estimates tasks for the daemon: what was measured of a workload
// or of its model, else what an estimator makes of the model's layers.
type Predictor struct {
	Catalogue
	environment environments.Environment
	method      methods.Method
}

// NewPredictor returns one that knows the software and the GPUs of the machine as
// an environment of estimator/environment. An error names what is unknown, and
// the nearest.
func NewPredictor(environment string) (*Predictor, error) {
	env, err := environments.Named(environment)
	if err != nil {
		return nil, fmt.Errorf("environment: %w", err)
	}
	return &Predictor{NewCatalogue(), env, Own()}, nil
}

// ForGPUs goes over to the environment that was measured on these models of
// GPUs, and returns its name; empty: there is none, and nothing changes. Before
// the first estimate.
func (p *Predictor) ForGPUs(models []string) string {
	name := environments.For(models)
	if env, err := environments.Named(name); name != "" && err == nil {
		p.environment = env
	}
	return name
}

// Context is what a process has before its first tensor, in its environment.
func (p *Predictor) Context() units.Bytes { return units.Bytes(p.environment.ContextFor(true)) }

// Estimate answers q. Earlier runs at other batch sizes correct what is known
// otherwise, or have to do alone.
func (p *Predictor) Estimate(q estimator.Query) (estimator.Estimate, error) {
	e, err := p.unseen(q)
	if err != nil || q.Declared > 0 || len(q.Runs) == 0 {
		return e, err
	}
	return p.corrected(q, e), nil
}

// unseen estimates without earlier runs, by what was measured of a workload
// first. It refuses any estimator but carma's.
func (p *Predictor) unseen(q estimator.Query) (estimator.Estimate, error) {
	if q.Declared == 0 && q.Estimator != "" && q.Estimator != p.method.Name() {
		return estimator.Estimate{}, fmt.Errorf("memory is booked by estimator %s; leave %q out (carma estimate compares with others), or say the memory with --mem", p.method.Name(), q.Estimator)
	}
	if q.Declared == 0 && q.Model == "" && q.Network == nil && q.Few != (estimator.Few{}) {
		return p.few(q)
	}
	if q.Declared > 0 || q.Model == "" && q.Network == nil {
		return p.Catalogue.Estimate(q)
	}
	if q.Network == nil {
		if e, err := p.Catalogue.Estimate(q); err == nil && !e.WholeGPU || !zoo.Known(q.Model) {
			return p.here(e), withNetworks(err)
		}
	}
	c, err := networkOf(q)
	if err != nil {
		return estimator.Estimate{}, err
	}
	model := c.Name
	if c.Origin == "probe" {
		model += ", from the probe,"
	}
	return p.ask(methods.Subject{Config: c}, model, c.Train.Batch)
}

// here is a measured figure in the daemon's environment: workloads were measured
// in the default one, and elsewhere a process may have more before its first
// tensor. One that has less books what was measured.
func (p *Predictor) here(e estimator.Estimate) estimator.Estimate {
	there, err := environments.Named(environments.Default)
	if err != nil || e.Method != estimator.Measured {
		return e
	}
	more := units.Bytes(p.environment.ContextFor(true) - there.ContextFor(true))
	if more <= 0 {
		return e
	}
	e.Point, e.Memory = e.Point+more, e.Memory+more
	e.Detail = fmt.Sprintf("%s; in %s a process has %s more before its first tensor: %s booked", e.Detail, p.environment.Name, more, e.Memory)
	return e
}

// few answers for a model of which only a few figures are known.
func (p *Predictor) few(q estimator.Query) (estimator.Estimate, error) {
	f := figures.Figures{Family: models.Family(q.Few.Family), Params: q.Few.Params, Input: q.Few.Input, Layers: q.Few.Layers, Batch: q.Batch, GPUs: q.GPUs}
	if err := f.Check(); err != nil {
		return estimator.Estimate{}, err
	}
	e, err := p.ask(methods.Subject{Figures: &f}, fmt.Sprintf("unknown %s of %d parameters", f.Family, f.Params), q.Batch)
	if most := units.Bytes(p.environment.Capacity); most > 0 && e.Memory >= most {
		return estimator.Estimate{WholeGPU: true, Method: estimator.WholeGPUs, Detail: e.Detail + ": the bound is more than such a GPU has, so it gets whole GPUs; --mem lets it share"}, err
	}
	e.Loose = true
	return e, err
}

// ask has carma's method answer for the daemon's environment.
func (p *Predictor) ask(s methods.Subject, model string, batch int) (estimator.Estimate, error) {
	s.Environment, s.Capacity = &p.environment.Environment, p.environment.Capacity
	m := p.method
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
func (p *Predictor) booked(what, name string, a methods.Answer) estimator.Estimate {
	if p.environment.Capacity > 0 && a.Point >= p.environment.Capacity {
		return estimator.Estimate{WholeGPU: true, Method: estimator.WholeGPUs, Detail: what + ": more than such a GPU has, so it gets whole GPUs; --mem lets it share"}
	}
	upper := max(units.Bytes(a.Upper), units.Bytes(a.Point))
	return estimator.Estimate{
		Memory: upper, Point: units.Bytes(a.Point), Method: name,
		Detail: fmt.Sprintf("%s: %s, %s booked", what, units.Bytes(a.Point), upper),
	}
}

// lineFar is how many doublings of the batch size outside two runs a line
// through them is better than the correction of an estimate by one.
const lineFar = 1

// corrected is an estimate after earlier runs at other batch sizes.
func (p *Predictor) corrected(q estimator.Query, e estimator.Estimate) estimator.Estimate {
	line, far, ok := estimator.FromRuns(q.Batch, q.Runs)
	if !ok {
		return e
	}
	if len(q.Runs) > 1 && far <= lineFar || e.Point <= 0 || e.Loose {
		return line
	}
	near, _ := estimator.Nearest(q.Batch, q.Runs)
	there, err := p.unseen(atBatch(q, near.Batch))
	if err != nil || there.Point <= 0 {
		return line
	}
	a := methods.Answer{Point: int64(e.Point), Upper: int64(e.Memory)}
	if e.Method == estimator.Measured {
		a.Upper = 2 * a.Point // its bound is for runs at batch sizes that were measured
	}
	a = a.Given(q.Batch, methods.Seen{Measured: int64(near.Peak), Point: int64(there.Point), Batch: near.Batch})
	e.Point, e.Memory = units.Bytes(a.Point), units.Bytes(a.Upper)
	e.Detail = fmt.Sprintf("%s; as runs at batch size %d used %s where %s is expected: %s, %s booked", e.Detail, near.Batch, near.Peak, there.Point, e.Point, e.Memory)
	return e
}

// atBatch is the same question at another batch size.
func atBatch(q estimator.Query, batch int) estimator.Query {
	if n := q.Network; n != nil {
		// What a program calls its batch size may be that of one GPU.
		scaled, err := n.With(models.Overrides{Batch: max(1, int(int64(n.Train.Batch)*int64(batch)/int64(q.Batch)))})
		if err == nil {
			q.Network = scaled
		}
	}
	q.Batch = batch
	return q
}

// networkOf builds the network a query names, or has.
func networkOf(q estimator.Query) (*models.Config, error) {
	if q.Network != nil {
		return q.Network, nil
	}
	if !zoo.Known(q.Model) {
		return nil, withNetworks(&estimator.UnknownModelError{Name: q.Model, Nearest: nearest.Near(q.Model, zoo.Names())})
	}
	o := models.Overrides{Batch: q.Batch}
	if q.GPUs > 1 {
		o.GPUs, o.Parallel = q.GPUs, models.DDP
	}
	return zoo.Build(q.Model, o)
}

// withNetworks adds the catalogue of networks to the names that an unknown one
// may be a misspelling of.
func withNetworks(err error) error {
	unknown, ok := errors.AsType[*estimator.UnknownModelError](err)
	if !ok || len(unknown.Nearest) > 0 {
		return err
	}
	return &estimator.UnknownModelError{Name: unknown.Name, Nearest: nearest.Near(strings.ToLower(unknown.Name), zoo.Names())}
}
