package booking

import (
	"carma/estimator/figures"
	"carma/estimator/methods"
	"carma/estimator/onnx"
	"carma/estimator/residual"
)

// Own is carma's estimator. It has the learned correction if a library to run it
// was found.
func Own() methods.Method {
	if s := onnx.Status(); !s.On {
		return &methods.Carma{Why: s.Why}
	}
	return &methods.Carma{Corrector: residual.NewModel(), Figures: figures.NewModel()}
}
