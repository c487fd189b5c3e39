package methods

import (
	"errors"
	"fmt"
	"math"

	"carma/estimator/figures"
	"carma/estimator/residual"
	"carma/estimator/step"
)

// Corrector is the learned correction of the simulated memory: the logarithm
// of measured over simulated, from [residual.Features].
type Corrector interface {
	Correct(features []float32) (float64, error)
}

// Carma simulates the training step on the allocator, corrects the result by
// what was learned from measured trainings, and bounds it by how far such
// estimates were off (split-conformal prediction).
type Carma struct {
	// Figures answers where only a few figures are known; nil where it is off.
	Figures *figures.Model
	// Corrector is nil where the correction is off; Why says why.
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

// Estimate simulates where the layers are known, else scales a tracker's peak,
// else asks what was learned of trainings with such figures.
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
	sim, err := c.simulate(s, group)
	if err != nil {
		return Answer{}, fmt.Errorf("model %s: %w", s.Config.Name, err)
	}
	a := Answer{Point: sim.Point.Total(), Parts: parts(sim)}
	if sim.Point.OutOfMemory {
		return c.without(s, group, confidence)
	}
	corrected := c.correct(s, group, sim, &a)
	a.Upper = int64(float64(a.Point) * math.Exp(group.bound(confidence, corrected)))
	if group.Other != "" {
		a.Warnings = append(a.Warnings, group.Other)
	}
	a.Warnings = append(a.Warnings, s.Config.Warnings...)
	return a, nil
}

// without answers for a training that does not fit: what it would need on a
// GPU that has room for it.
func (c *Carma) without(s Subject, g group, confidence float64) (Answer, error) {
	vast := *s.Environment
	vast.Capacity, vast.Allocator.Limit = 0, 0
	r, err := step.Simulate(s.Config, &vast)
	if err != nil {
		return Answer{}, fmt.Errorf("model %s: %w", s.Config.Name, err)
	}
	a := Answer{Point: max(r.Total(), s.Environment.Capacity), Parts: parts(residual.Simulated{Point: r})}
	a.Upper = int64(float64(a.Point) * math.Exp(g.bound(confidence, false)))
	a.Warnings = append(a.Warnings, fmt.Sprintf("it does not fit into the %d MiB of %s: the training would end out of memory", s.Environment.Capacity>>20, s.Environment.Name))
	return a, nil
}

// correct applies the learned correction, if there is one for the group.
func (c *Carma) correct(s Subject, g group, sim residual.Simulated, a *Answer) bool {
	if !g.Residual {
		return false
	}
	if c.Corrector == nil {
		a.Warnings = append(a.Warnings, "without the learned correction: "+c.Why)
		return false
	}
	log, err := c.Corrector.Correct(residual.Features(s.Config, sim, s.FakeTensor))
	if err == nil && math.IsNaN(log) {
		err = errors.New("it is not a number")
	}
	if err != nil {
		a.Warnings = append(a.Warnings, fmt.Sprintf("without the learned correction: %v", err))
		return false
	}
	point := int64(float64(a.Point) * math.Exp(min(max(log, -maxCorrection), maxCorrection)))
	a.Parts = append(a.Parts, Part{"learned correction", point - a.Point})
	a.Point = point
	return true
}

// simulate runs what the correction of the group needs, or the step alone.
func (c *Carma) simulate(s Subject, g group) (residual.Simulated, error) {
	if g.Residual && c.Corrector != nil {
		return residual.Simulate(s.Config, s.Environment)
	}
	r, err := step.Simulate(s.Config, s.Environment)
	return residual.Simulated{Point: r}, err
}

// maxCorrection bounds the learned factor to what any training needed.
const maxCorrection = 0.5

// fromTracker scales the peak of a FakeTensor tracker: it counts neither the
// context nor the optimizer, the allocator's rounding and what only the
// autograd graph holds.
func (c *Carma) fromTracker(s Subject, confidence float64) (Answer, error) {
	if s.FakeTensor <= 0 {
		return c.fromFigures(s, confidence)
	}
	t := calibrated().Tracker
	a := Answer{Point: int64(t.Base*(1<<20) + t.Factor*float64(s.FakeTensor))}
	a.Upper = int64(float64(a.Point) * math.Exp(t.Group.bound(confidence, false)))
	a.Parts = []Part{{"tracked", s.FakeTensor}, {"context, optimizer, allocator", a.Point - s.FakeTensor}}
	a.Warnings = []string{"from the tracked peak alone: the layers are not known"}
	return a, nil
}

// parts splits a simulated total.
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
