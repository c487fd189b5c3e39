package booking

import (
	"carma/estimator/figures"
	"carma/estimator/methods"
	"carma/estimator/onnx"
)

// Own is carma's estimator. It can estimate from a few figures if ONNX Runtime was found.
func Own() methods.Method {
	if s := onnx.Status(); !s.On {
		return &methods.Carma{Why: s.Why}
	}
	return &methods.Carma{Figures: figures.NewModel()}
}
