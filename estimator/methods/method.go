package methods

import (
	"errors"

	"carma/configs/models"
	"carma/estimator/figures"
	"carma/estimator/step"
)

// Subject is what a method is asked about.
type Subject struct {
	// Config is the model; nil: only what follows is known.
	Config *models.Config
	// Figures are the few that are known where Config is nil; nil: not even those.
	Figures *figures.Figures
	// Environment is what it will run in.
	Environment *step.Environment
	// FakeTensor is the peak a FakeTensor tracker reported for this very
	// configuration, in bytes; 0: not run.
	FakeTensor int64
	// Confidence that the bound holds; 0: 0.95.
	Confidence float64
	// Capacity of the GPU in bytes; 0: unknown.
	Capacity int64
}

// Answer is an estimate of the memory of one GPU, in bytes.
type Answer struct {
	// Point is the likeliest value; Upper a bound, at least Point. Methods
	// that give no bound repeat the point.
	Point, Upper int64
	// Parts are what it is made of, where the method tells.
	Parts []Part
	// Warnings in one sentence each.
	Warnings []string
}

// Part is a component of an estimate: context, weights, gradients, optimizer,
// activations, workspace, fragmentation, residual.
type Part struct {
	Name  string
	Bytes int64
}

// Method is one way to estimate.
type Method interface {
	// Name on the command line.
	Name() string
	// Source says where the method is published.
	Source() string
	// Estimate answers for one subject, or fails with [ErrNotApplicable]
	// wrapped in the reason.
	Estimate(Subject) (Answer, error)
}

// ErrNotApplicable says that a method has no answer for a subject: a family of
// networks it has no data for, a missing input, a library that is not there.
var ErrNotApplicable = errors.New("not applicable")
