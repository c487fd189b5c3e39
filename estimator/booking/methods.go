package booking

import (
	"carma/estimator/figures"
	"carma/estimator/methods"
	"carma/estimator/onnx"
	"carma/estimator/residual"
)

// Own is carma's estimator, with the learned correction where there is a library
// to run it.
func Own() methods.Method {
	if s := onnx.Status(); !s.On {
		return &methods.Carma{Why: s.Why}
	}
	return &methods.Carma{Corrector: residual.NewModel(), Figures: figures.NewModel()}
}
