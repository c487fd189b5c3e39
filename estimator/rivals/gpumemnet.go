package rivals

import (
	"errors"
	"fmt"
	"strings"

	"carma/estimator/methods"
	"carma/estimator/onnx"
	"carma/estimator/rivals/gpumemnet"
)

// GPUMemNet is the published classifier, retrained by this project. It predicts a class of
// memory. The estimate is the upper edge of the class.
type GPUMemNet struct {
	// Design is the design to use. The zero value stands for the family's design with the
	// higher accuracy on the held-out folds.
	Design gpumemnet.Design
}

// Classifiers returns two methods: GPUMemNet with the more accurate design of each family,
// and GPUMemNet with the transformer design.
func Classifiers() []methods.Method {
	return []methods.Method{GPUMemNet{}, GPUMemNet{Design: gpumemnet.Transformer}}
}

// Name returns gpumemnet, plus the design's name if g.Design is set.
func (g GPUMemNet) Name() string {
	if g.Design == gpumemnet.Better {
		return "gpumemnet"
	}
	return "gpumemnet-" + string(g.Design)
}

// Source names the method's publication.
func (GPUMemNet) Source() string {
	return "Yousefzadeh-Asl-Miandoab et al., EuroMLSys '26, DOI 10.1145/3805621.3807621; trained by this project (estimator/rivals/gpumemnet)"
}

// Estimate asks the classifier of the subject's family.
func (g GPUMemNet) Estimate(s methods.Subject) (methods.Answer, error) {
	if s.Config == nil {
		return methods.Answer{}, fmt.Errorf("%w: it needs the layers", methods.ErrNotApplicable)
	}
	r, err := gpumemnet.Estimate(*s.Config, g.Design)
	switch {
	case errors.Is(err, gpumemnet.ErrNoData), errors.Is(err, gpumemnet.ErrTooLong), errors.Is(err, onnx.ErrUnavailable):
		return methods.Answer{}, fmt.Errorf("%w: %w", methods.ErrNotApplicable, err)
	case err != nil:
		return methods.Answer{}, err
	}
	a := methods.Answer{Point: int64(r.Upper)}
	if r.Upper == 0 {
		a.Point = max(s.Environment.Capacity, lastEdge)
		a.Warnings = append(a.Warnings, "the highest class: above 40,000 MiB")
	}
	a.Upper = a.Point
	if len(r.Outside) > 0 {
		a.Warnings = append(a.Warnings, "outside of its training data: "+strings.Join(r.Outside, ", "))
	}
	return a, nil
}

// lastEdge is the lower edge of the highest class, which has no upper edge.
const lastEdge = 40_000 << 20
