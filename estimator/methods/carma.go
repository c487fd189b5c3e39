package methods

import (
	"fmt"
	"math"

	"carma/configs/models"
	"carma/estimator/figures"
	"carma/estimator/step"
)

// Carma simulates the training step on the allocator. The bound comes from the errors of
// such estimates of measured trainings (split-conformal prediction).
type Carma struct {
	// Figures estimates from a few figures. If it is nil, Why is the reason.
	Figures *figures.Model
	Why     string
}

// Name returns "carma".
func (*Carma) Name() string { return "carma" }

// Source names the source of the method.
func (*Carma) Source() string {
	return "this project: simulated allocator, conformal bound (docs/estimators.md)"
}

// DefaultConfidence is the confidence for a subject that names none.
const DefaultConfidence = 0.95

// Estimate simulates the training if its layers are known. Otherwise it scales a
// tracker's peak, or else estimates from a few figures.
func (c *Carma) Estimate(s Subject) (Answer, error) {
	confidence := s.Confidence
	if confidence == 0 {
		confidence = DefaultConfidence
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
	sim, err := plan.Simulate(s.Environment)
	if err != nil {
		return Answer{}, fmt.Errorf("model %s: %w", s.Config.Name, err)
	}
	a := Answer{Point: sim.Total(), Parts: parts(sim)}
	if n := sim.Paged; n > 0 {
		a.Warnings = append(a.Warnings, fmt.Sprintf("%d MiB of the optimizer's states are paged: on the GPU while there is room, else on the host; they are not counted", n>>20))
	}
	if s.Config.Train.Compile {
		a.Warnings = append(a.Warnings, "torch.compile is counted as without it, which is more; the pool of CUDA graphs (mode reduce-overhead) is not counted")
	}
	if sim.OutOfMemory {
		return c.without(s, plan, group, confidence)
	}
	a.Upper = a.bound(group.Plain.Log(confidence, s.Config.Train.Batch))
	if group.Other != "" {
		a.Warnings = append(a.Warnings, group.Other)
	}
	a.Warnings = append(a.Warnings, s.Config.Warnings...)
	return a, nil
}

// Check returns the reason why the training of a configuration cannot be simulated, or
// nil.
func Check(c *models.Config) error {
	_, err := step.Prepare(c)
	return err
}

// without answers for a training that does not fit: the memory that it would need on a
// larger GPU.
func (c *Carma) without(s Subject, p *step.Plan, g group, confidence float64) (Answer, error) {
	vast := *s.Environment
	vast.Capacity, vast.Allocator.Limit = 0, 0
	r, err := p.Simulate(&vast)
	if err != nil {
		return Answer{}, fmt.Errorf("model %s: %w", s.Config.Name, err)
	}
	a := Answer{Point: max(r.Total(), s.Environment.Capacity), Parts: parts(r)}
	a.Upper = a.bound(g.Plain.Log(confidence, s.Config.Train.Batch))
	a.Warnings = append(a.Warnings, fmt.Sprintf("it does not fit into the %d MiB of %s: the training would end out of memory", s.Environment.Capacity>>20, s.Environment.Name))
	return a, nil
}

// bound returns the upper bound at which ln(bound / point) is log.
func (a *Answer) bound(log float64) int64 { return int64(float64(a.Point) * math.Exp(log)) }

// fromTracker scales the peak of a FakeTensor tracker. The tracker misses the
// context, the optimizer, the allocator's rounding and tensors that only the
// autograd graph holds.
func (c *Carma) fromTracker(s Subject, confidence float64) (Answer, error) {
	if s.FakeTensor <= 0 {
		return c.fromFigures(s, confidence)
	}
	t := calibrated().Tracker
	a := Answer{Point: int64(t.Base*(1<<20) + t.Factor*float64(s.FakeTensor))}
	a.Upper = a.bound(t.Group.Plain.Log(confidence, 1))
	a.Parts = []Part{{"tracked", s.FakeTensor}, {"context, optimizer, allocator", a.Point - s.FakeTensor}}
	a.Warnings = []string{"from the tracked peak alone: the layers are not known"}
	return a, nil
}

// parts splits a simulated total into its components.
func parts(p step.Result) []Part {
	out := []Part{{"context", p.Context}}
	var sum int64
	for i, name := range []string{"weights", "gradients", "optimizer", "activations", "workspace"} {
		out = append(out, Part{name, p.Parts[i]})
		sum += p.Parts[i]
	}
	return append(out, Part{"fragmentation", max(p.Reserved-sum, 0)})
}
