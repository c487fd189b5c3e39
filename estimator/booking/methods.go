package booking

import (
	"carma/estimator/figures"
	"carma/estimator/methods"
	"carma/estimator/onnx"
	"carma/estimator/residual"
)

// Methods are carma's own estimator and the published ones.
func Methods() []methods.Method {
	return methods.All(append([]methods.Method{own()}, methods.Classifiers()...)...)
}

// own is carma's estimator, with the learned correction where there is
// a library to run it.
func own() *methods.Carma {
	if s := onnx.Status(); !s.On {
		return &methods.Carma{Why: s.Why}
	}
	return &methods.Carma{Corrector: residual.NewModel(), Figures: figures.NewModel()}
}
