package booking

import (
	"carma/estimator/figures"
	"carma/estimator/methods"
	"carma/estimator/onnx"
)

// Own returns carma's estimator. The estimator needs ONNX Runtime to estimate from a few
// figures.
func Own() methods.Method {
	if s := onnx.Status(); !s.On {
		return &methods.Carma{Why: s.Why}
	}
	return &methods.Carma{Figures: figures.NewModel()}
}
