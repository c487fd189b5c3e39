package booking

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"carma/internal/units"

	"carma/configs/models"
	"carma/estimator"
	environments "carma/estimator/environment"
	"carma/estimator/figures"
	"carma/estimator/methods"
	"carma/estimator/networks/named"
	"carma/internal/suggest"
)

// Predictor estimates tasks for the daemon. It takes the measurement of a
// workload or model if there is one, otherwise an estimate from the model's
// layers.
type Predictor struct {
	Catalogue
	environment atomic.Pointer[environments.Environment] // Use changes it concurrently with estimates
	method      methods.Method
	memo        memo
}

// NewPredictor returns a predictor. environment is the name of an environment of
// estimator/environment, which describes the machine's software and GPUs. The error for an
// unknown name suggests the nearest one.
func NewPredictor(environment string) (*Predictor, error) {
	env, err := environments.Named(environment)
	if err != nil {
		return nil, fmt.Errorf("environment: %w", err)
	}
	p := &Predictor{Catalogue: NewCatalogue(), method: Own()}
	p.environment.Store(&env)
	return p, nil
}

// ForGPUs switches to the environment that was measured on these models of GPUs, and
// returns the environment's name. If no environment fits, it returns empty and changes
// nothing. Call it before the first estimate.
func (p *Predictor) ForGPUs(models []string) string {
	name := environments.For(models)
	if env, err := environments.Named(name); name != "" && err == nil {
		p.Use(env)
	}
	return name
}

// Use switches to an environment, for the estimates that begin from now on.
func (p *Predictor) Use(env environments.Environment) { p.environment.Store(&env) }

// Environment returns the environment in use.
func (p *Predictor) Environment() *environments.Environment { return p.environment.Load() }

// Context returns the memory that a process uses before its first tensor, in the
// predictor's environment.
func (p *Predictor) Context() units.Bytes { return units.Bytes(p.Environment().ContextFor(true)) }

// Estimate answers q. Equal queries have equal answers in one environment.
func (p *Predictor) Estimate(q estimator.Query) (estimator.Estimate, error) {
	return p.memo.estimate(p.Environment(), q, p.answer)
}

// answer answers q. Earlier runs at other batch sizes correct the estimate. If nothing
// else is known, the estimate is based only on them.
func (p *Predictor) answer(q estimator.Query) (estimator.Estimate, error) {
	e, err := p.unseen(q)
	switch {
	case err != nil:
		return e, err
	case q.Declared > 0:
		return p.measuring(q, e), nil
	case len(q.Runs) > 0:
		return p.corrected(q, e), nil
	}
	return p.asHere(q, e), nil
}

// unseen estimates without earlier runs. A measurement of a workload takes precedence. The
// query may name no estimator other than carma's.
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
	if q.Network == nil && !detailed(q) {
		if e, err := p.Catalogue.Estimate(q); err == nil && !e.WholeGPU || !named.Known(q.Model) {
			return p.plainly(p.here(e), "", strings.ToLower(q.Model)), withNetworks(err)
		}
	}
	c, kind, err := networkOf(q)
	if err != nil {
		return estimator.Estimate{}, err
	}
	e, err := p.ask(methods.Subject{Config: c}, called(q, c, kind), c.Train.Batch)
	if q.Read != "" && q.Network == nil {
		e.Detail += "; read from the command: " + q.Read
	}
	return p.plainly(e, string(c.Family), modelKey(c, len(q.Described) > 0)), err
}

// here converts a measured figure to the daemon's environment. Workloads were measured in
// the default environment. If a process uses more memory before its first tensor here,
// here adds the difference. If it uses less, the measured figure stays.
func (p *Predictor) here(e estimator.Estimate) estimator.Estimate {
	there, err := environments.Named(environments.Default)
	if err != nil || e.Method != estimator.Measured {
		return e
	}
	more := units.Bytes(p.Environment().ContextFor(true) - there.ContextFor(true))
	if more <= 0 {
		return e
	}
	e.Point, e.Memory = e.Point+more, e.Memory+more
	e.Detail = fmt.Sprintf("%s; in %s a process has %s more before its first tensor: %s booked", e.Detail, p.Environment().Name, more, e.Memory)
	return e
}

// few estimates a model from a few figures, such as its number of parameters.
func (p *Predictor) few(q estimator.Query) (estimator.Estimate, error) {
	f := figures.Figures{Family: models.Family(q.Few.Family), Params: q.Few.Params, Input: q.Few.Input, Layers: q.Few.Layers, Batch: q.Batch, GPUs: q.GPUs}
	if err := f.Check(); err != nil {
		return estimator.Estimate{}, err
	}
	e, err := p.ask(methods.Subject{Figures: &f}, fmt.Sprintf("unknown %s of %d parameters", f.Family, f.Params), q.Batch)
	if most := units.Bytes(p.Environment().Capacity); most > 0 && e.Memory >= most {
		return estimator.Estimate{WholeGPU: true, Large: true, Method: estimator.WholeGPUs, Detail: e.Detail + ": the bound is more than such a GPU has, so it gets whole GPUs; --mem lets it share"}, err
	}
	e.Loose = true
	return p.plainly(e, "figures "+string(f.Family), fmt.Sprintf("%d parameters", f.Params)), err
}

// ask returns the answer of carma's method for the daemon's environment.
func (p *Predictor) ask(s methods.Subject, model string, batch int) (estimator.Estimate, error) {
	env := p.Environment()
	s.Environment, s.Capacity = &env.Environment, env.Capacity
	m := p.method
	a, err := m.Estimate(s)
	if errors.Is(err, methods.ErrNotApplicable) {
		return estimator.Estimate{WholeGPU: true, Method: estimator.WholeGPUs, Detail: fmt.Sprintf("estimator %s has no estimate for %s, so it gets whole GPUs: %v", m.Name(), model, err)}, nil
	}
	if err != nil {
		return estimator.Estimate{}, err
	}
	if s.Config != nil && s.Config.Train.GPUs > 1 {
		a.Point, a.Upper = a.Point+env.NCCL, a.Upper+env.NCCL
	}
	return p.booked(fmt.Sprintf("%s at batch size %d by estimator %s (%s)", model, batch, m.Name(), p.Environment().Name), m.Name(), a), nil
}

// booked converts an answer to an estimate. what names the subject and the method.
func (p *Predictor) booked(what, name string, a methods.Answer) estimator.Estimate {
	if p.Environment().Capacity > 0 && a.Point >= p.Environment().Capacity {
		return estimator.Estimate{WholeGPU: true, Large: true, Method: estimator.WholeGPUs, Detail: what + ": more than such a GPU has, so it gets whole GPUs; --mem lets it share"}
	}
	upper := max(units.Bytes(a.Upper), units.Bytes(a.Point))
	return estimator.Estimate{
		Memory: upper, Point: units.Bytes(a.Point), Method: name,
		Detail: fmt.Sprintf("%s: %s, %s booked", what, units.Bytes(a.Point), upper),
	}
}

// lineFar is the largest distance, in doublings of the batch size, at which a line
// through two runs is used outside their range. At larger distances, an estimate
// corrected by one run is more accurate.
const lineFar = 1

// corrected returns an estimate that earlier runs at other batch sizes correct.
func (p *Predictor) corrected(q estimator.Query, e estimator.Estimate) estimator.Estimate {
	line, far, ok := estimator.FromRuns(q.Batch, q.Runs)
	if !ok {
		return p.asHere(q, e)
	}
	line.Plain = e.Plain
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
		a.Upper = 2 * a.Point // the bound of a measurement holds only at measured batch sizes
	}
	a = a.Given(q.Batch, methods.Seen{Measured: int64(near.Peak), Point: int64(there.Point), Batch: near.Batch})
	e.Point, e.Memory = units.Bytes(a.Point), units.Bytes(a.Upper)
	e.Detail = fmt.Sprintf("%s; as runs at batch size %d used %s where %s is expected: %s, %s booked", e.Detail, near.Batch, near.Peak, there.Point, e.Point, e.Memory)
	return e
}

// atBatch returns the query q with another batch size.
func atBatch(q estimator.Query, batch int) estimator.Query {
	if n := q.Network; n != nil {
		// The program's batch size may be per GPU, so the network's is scaled.
		scaled, err := n.With(models.Overrides{Batch: max(1, int(int64(n.Train.Batch)*int64(batch)/int64(q.Batch)))})
		if err == nil {
			q.Network = scaled
		}
	}
	if s := q.Settings.Batch; s > 0 {
		q.Settings.Batch = max(1, int(int64(s)*int64(batch)/int64(q.Batch)))
	}
	q.Batch = batch
	return q
}

// withNetworks adds suggestions from the catalogue of networks to an error about
// an unknown name.
func withNetworks(err error) error {
	unknown, ok := errors.AsType[*estimator.UnknownModelError](err)
	if !ok || len(unknown.Nearest) > 0 {
		return err
	}
	return &estimator.UnknownModelError{Name: unknown.Name, Nearest: suggest.Near(strings.ToLower(unknown.Name), named.All())}
}
