package methods

import (
	"errors"
	"fmt"
	"math"

	"carma/configs/models"
	"carma/estimator/figures"
	"carma/estimator/residual"
	"carma/estimator/step"
)

// Corrector is the learned correction of the simulated memory. From
// [residual.Features] it predicts the logarithm of measured over simulated
// memory, and how far off that usually is, as a logarithm too.
type Corrector interface {
	Correct(features []float32) (log, spread float64, err error)
}

// Carma simulates the training step on the allocator. It corrects the result by a
// model learned from measured trainings. The bound comes from the errors of such
// estimates (split-conformal prediction).
type Carma struct {
	// Figures estimates from a few figures; nil: off.
	Figures *figures.Model
	// Corrector is the learned correction; nil: off, and Why says why.
	Corrector Corrector
	Why       string
}

// Name is carma.
func (*Carma) Name() string { return "carma" }

// Source of the method.
func (*Carma) Source() string {
	return "this project: simulated allocator, learned residual, conformal bound (docs/estimators.md)"
}

const defaultConfidence = 0.95

// Estimate simulates the training if its layers are known. Otherwise it scales a
// tracker's peak, or else estimates from a few figures.
func (c *Carma) Estimate(s Subject) (Answer, error) {
	confidence := s.Confidence
	if confidence == 0 {
		confidence = defaultConfidence
	}
	if !(confidence > 0 && confidence < 1) {
		return Answer{}, fmt.Errorf("a confidence of %g is not between 0 and 1; the default is 0.95", s.Confidence)
	}
	if s.Config == nil || len(s.Config.Layers) == 0 {
		return c.fromTracker(s, confidence)
	}
	group := groupOf(s.Environment.Name, s.Config.Family)
	plan, err := step.Prepare(s.Config)
	if err != nil {
		return Answer{}, fmt.Errorf("model %s: %w", s.Config.Name, err)
	}
	defer plan.Done()
	sim, err := c.simulate(plan, s.Environment, group)
	if err != nil {
		return Answer{}, fmt.Errorf("model %s: %w", s.Config.Name, err)
	}
	a := Answer{Point: sim.Point.Total(), Parts: parts(sim)}
	if n := sim.Point.Paged; n > 0 {
		a.Warnings = append(a.Warnings, fmt.Sprintf("%d MiB of the optimizer's states are paged: on the GPU while there is room, else on the host; they are not counted", n>>20))
	}
	if s.Config.Train.Compile {
		a.Warnings = append(a.Warnings, "torch.compile is counted as without it, which is more; the pool of CUDA graphs (mode reduce-overhead) is not counted")
	}
	if sim.Point.OutOfMemory {
		return c.without(s, plan, group, confidence)
	}
	spread, corrected := c.correct(s, group, sim, &a)
	a.Upper = int64(float64(a.Point) * math.Exp(spread*group.bound(confidence, s.Config.Train.Batch, corrected)))
	if group.Other != "" {
		a.Warnings = append(a.Warnings, group.Other)
	}
	a.Warnings = append(a.Warnings, s.Config.Warnings...)
	return a, nil
}

// Check reports why the training of a configuration cannot be simulated.
func Check(c *models.Config) error {
	_, err := step.Prepare(c)
	return err
}

// without answers for a training that does not fit: the memory that it would need
// on a larger GPU.
func (c *Carma) without(s Subject, p *step.Plan, g group, confidence float64) (Answer, error) {
	vast := *s.Environment
	vast.Capacity, vast.Allocator.Limit = 0, 0
	r, err := p.Simulate(&vast)
	if err != nil {
		return Answer{}, fmt.Errorf("model %s: %w", s.Config.Name, err)
	}
	a := Answer{Point: max(r.Total(), s.Environment.Capacity), Parts: parts(residual.Simulated{Point: r})}
	a.Upper = int64(float64(a.Point) * math.Exp(g.bound(confidence, s.Config.Train.Batch, false)))
	a.Warnings = append(a.Warnings, fmt.Sprintf("it does not fit into the %d MiB of %s: the training would end out of memory", s.Environment.Capacity>>20, s.Environment.Name))
	return a, nil
}

// correct applies the learned correction, if there is one for the group. Its spread
// is the unit of the group's bounds; without a correction that is 1.
func (c *Carma) correct(s Subject, g group, sim residual.Simulated, a *Answer) (spread float64, corrected bool) {
	if !g.Residual {
		return 1, false
	}
	if c.Corrector == nil {
		a.Warnings = append(a.Warnings, "without the learned correction: "+c.Why)
		return 1, false
	}
	log, spread, err := c.Corrector.Correct(residual.Features(s.Config, sim, s.FakeTensor))
	if err == nil && (math.IsNaN(log) || !(spread > 0)) {
		err = errors.New("it is not a number")
	}
	if err != nil {
		a.Warnings = append(a.Warnings, fmt.Sprintf("without the learned correction: %v", err))
		return 1, false
	}
	point := int64(float64(a.Point) * math.Exp(min(max(log, -maxCorrection), maxCorrection)))
	a.Parts = append(a.Parts, Part{"learned correction", point - a.Point})
	a.Point = point
	return min(spread, maxSpread), true
}

// simulate runs the simulations that the group's correction needs, or only one.
func (c *Carma) simulate(p *step.Plan, env *step.Environment, g group) (residual.Simulated, error) {
	if g.Residual && c.Corrector != nil {
		return residual.Simulate(p, env)
	}
	r, err := p.Simulate(env)
	return residual.Simulated{Point: r}, err
}

// maxCorrection bounds the logarithm of the learned factor. No measured training
// needed more.
const maxCorrection = 0.5

// maxSpread bounds how far off a correction is expected to be. Few learned ones were
// off by more.
const maxSpread = 0.2

// fromTracker scales the peak of a FakeTensor tracker. The tracker misses the
// context, the optimizer, the allocator's rounding and tensors that only the
// autograd graph holds.
func (c *Carma) fromTracker(s Subject, confidence float64) (Answer, error) {
	if s.FakeTensor <= 0 {
		return c.fromFigures(s, confidence)
	}
	t := calibrated().Tracker
	a := Answer{Point: int64(t.Base*(1<<20) + t.Factor*float64(s.FakeTensor))}
	a.Upper = int64(float64(a.Point) * math.Exp(t.Group.bound(confidence, 1, false)))
	a.Parts = []Part{{"tracked", s.FakeTensor}, {"context, optimizer, allocator", a.Point - s.FakeTensor}}
	a.Warnings = []string{"from the tracked peak alone: the layers are not known"}
	return a, nil
}

// parts splits a simulated total into its components.
func parts(s residual.Simulated) []Part {
	p := s.Point
	out := []Part{{"context", p.Context}}
	var sum int64
	for i, name := range []string{"weights", "gradients", "optimizer", "activations", "workspace"} {
		out = append(out, Part{name, p.Parts[i]})
		sum += p.Parts[i]
	}
	return append(out, Part{"fragmentation", max(p.Reserved-sum, 0)})
}
