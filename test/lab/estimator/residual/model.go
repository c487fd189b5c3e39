package residual

import (
	_ "embed"
	"fmt"
	"math"

	"carma/estimator/onnx"
)

// The trees are learned by estimator/training/residual.py. card.json beside them
// has the training data and the errors.
//
//go:embed residual.onnx
var trees []byte

// Model is the learned correction. It is loaded at its first use. It is safe for
// concurrent use.
type Model struct{ session *onnx.Session }

// NewModel returns the correction that ships with carma.
func NewModel() *Model {
	return &Model{onnx.New("residual", trees, []string{"features"}, []string{"log", "spread"})}
}

// Correct predicts from the features of a training the logarithm of measured over
// simulated memory, and how far off that usually is: the spread, above 0. It fails
// with [onnx.ErrUnavailable] if there is no library.
func (m *Model) Correct(features []float32) (log, spread float64, err error) {
	if len(features) != len(names) {
		return 0, 0, fmt.Errorf("%d features, want %d", len(features), len(names))
	}
	out, err := m.session.Run(onnx.Rows(1, features))
	if err != nil {
		return 0, 0, err
	}
	return float64(out[0].Data[0]), math.Exp(float64(out[1].Data[0])), nil
}
