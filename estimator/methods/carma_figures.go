package methods

import (
	"errors"
	"fmt"

	"carma/estimator/figures"
	"carma/estimator/onnx"
)

// fromFigures estimates from a few figures, without the layers or their widths.
func (c *Carma) fromFigures(s Subject, confidence float64) (Answer, error) {
	if s.Figures == nil {
		return Answer{}, fmt.Errorf("%w: neither the model's layers nor a tracked peak are known", ErrNotApplicable)
	}
	if c.Figures == nil {
		return Answer{}, fmt.Errorf("%w: the model of a few figures is off: %s", ErrNotApplicable, c.Why)
	}
	r, err := c.Figures.Estimate(*s.Figures, s.Environment, confidence)
	switch {
	case errors.Is(err, figures.ErrFamily), errors.Is(err, onnx.ErrUnavailable):
		return Answer{}, fmt.Errorf("%w: %w", ErrNotApplicable, err)
	case err != nil:
		return Answer{}, err
	}
	if most := s.Environment.Capacity; most > 0 && r.Point > most {
		r.Warnings = append(r.Warnings, fmt.Sprintf("it does not fit into the %d MiB of %s", most>>20, s.Environment.Name))
	}
	return Answer{
		Point: r.Point, Upper: r.Upper,
		Parts:    []Part{{"context", r.Context}, {"weights, gradients, optimizer", r.Weights}, {"the rest, as learned", r.Point - r.Context - r.Weights}},
		Warnings: append([]string{"from a few figures alone: " + known(s.Figures) + "; without a table of the layers the bound is wide"}, r.Warnings...),
	}, nil
}

// known lists the known figures, for a message.
func known(f *figures.Figures) string {
	text := "parameters, batch size, family"
	if f.Input > 0 {
		text += ", size of a sample"
	}
	if f.Layers > 0 {
		text += ", number of layers"
	}
	return text
}
