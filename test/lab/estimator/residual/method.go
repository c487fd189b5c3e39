package residual

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"sync"

	"carma/configs/models"
	"carma/estimator/methods"
	"carma/estimator/step"
)

// calibration.json has the errors of corrected estimates on measured trainings that they
// were not fitted to, in units of the spread that the correction expects.
// estimator/training/residual.py writes it.
//
//go:embed calibration.json
var calibrationFile []byte

// group is an environment and a family of networks on which the correction was learned.
type group struct {
	Environment string         `json:"environment"`
	Family      models.Family  `json:"family"`
	Bounds      methods.Bounds `json:"bounds"`
}

var groups = sync.OnceValue(func() (all []group) {
	if err := json.Unmarshal(calibrationFile, &all); err != nil {
		panic("calibration.json: " + err.Error()) // a test reads the file too
	}
	return all
})

// Corrector predicts from features the logarithm of measured over simulated memory, and how
// far off that usually is, as a logarithm too.
type Corrector interface {
	Correct(features []float32) (log, spread float64, err error)
}

// Corrected is estimator carma with the learned correction, in the environments of the
// public data on which it was learned. The daemon and the command do not have it: no
// machine has such an environment.
type Corrected struct {
	methods.Carma
	Corrector Corrector
}

const (
	// maxCorrection bounds the logarithm of the learned factor. No measured training needed
	// more.
	maxCorrection = 0.5
	// maxSpread bounds how far off a correction is expected to be. Few learned ones were off
	// by more.
	maxSpread = 0.2
)

// Estimate corrects the answer of estimator carma, if it fits into the environment.
func (m *Corrected) Estimate(s methods.Subject) (methods.Answer, error) {
	a, err := m.Carma.Estimate(s)
	if err != nil || s.Config == nil {
		return a, err
	}
	for _, g := range groups() {
		if g.Environment == s.Environment.Name && g.Family == s.Config.Family {
			return m.correct(s, g, a)
		}
	}
	return a, nil
}

func (m *Corrected) correct(s methods.Subject, g group, a methods.Answer) (methods.Answer, error) {
	plan, err := step.Prepare(s.Config)
	if err != nil {
		return a, err
	}
	defer plan.Done()
	sim, err := Simulate(plan, s.Environment)
	if err != nil || sim.Point.OutOfMemory {
		return a, err
	}
	log, spread, err := m.Corrector.Correct(Features(s.Config, sim, s.FakeTensor))
	if err == nil && (math.IsNaN(log) || !(spread > 0)) {
		err = errors.New("it is not a number")
	}
	if err != nil {
		return a, fmt.Errorf("the learned correction: %w", err)
	}
	confidence := s.Confidence
	if confidence == 0 {
		confidence = methods.DefaultConfidence
	}
	point := int64(float64(a.Point) * math.Exp(min(max(log, -maxCorrection), maxCorrection)))
	a.Parts = append(a.Parts, methods.Part{Name: "learned correction", Bytes: point - a.Point})
	a.Point = point
	a.Upper = int64(float64(point) * math.Exp(min(spread, maxSpread)*g.Bounds.Log(confidence, s.Config.Train.Batch)))
	return a, nil
}
