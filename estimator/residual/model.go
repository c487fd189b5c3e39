package residual

import (
	_ "embed"
	"fmt"

	"carma/estimator/onnx"
)

// The trees are learned by estimator/training/residual.py; card.json beside
// them says from what and how well.
//
//go:embed residual.onnx
var trees []byte

// Model is the learned correction. Nothing is loaded before it is first asked.
// It is safe for concurrent use.
type Model struct{ session *onnx.Session }

// NewModel returns the correction that ships with carma.
func NewModel() *Model {
	return &Model{onnx.New("residual", trees, []string{"features"}, []string{"variable"})}
}

// Correct gives the logarithm of measured over simulated memory that trainings
// with such features had. It fails with [onnx.ErrUnavailable] where there is
// no library.
func (m *Model) Correct(features []float32) (float64, error) {
	if len(features) != len(names) {
		return 0, fmt.Errorf("%d features, want %d", len(features), len(names))
	}
	out, err := m.session.Run(onnx.Rows(1, features))
	if err != nil {
		return 0, err
	}
	return float64(out[0].Data[0]), nil
}
