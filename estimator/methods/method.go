package methods

import (
	"errors"

	"carma/configs/models"
	"carma/estimator/figures"
	"carma/estimator/step"
)

// Subject is a training to estimate.
type Subject struct {
	// Config is the model, or nil if unknown.
	Config *models.Config
	// Figures contains a few known figures if Config is nil, or is nil.
	Figures *figures.Figures
	// Environment is the software and GPU on which the training will run.
	Environment *step.Environment
	// FakeTensor is the peak that a FakeTensor tracker reported for exactly this
	// configuration, in bytes, or 0.
	FakeTensor int64
	// Confidence is the probability that the bound holds, or 0 for [DefaultConfidence].
	Confidence float64
	// Capacity is the memory of the GPU in bytes, or 0 if unknown.
	Capacity int64
}

// Answer is an estimate of the memory of one GPU, in bytes.
type Answer struct {
	// Point is the likeliest value. Upper is a bound, at least Point. A method
	// without a bound repeats the point.
	Point, Upper int64
	// Parts lists the components of Point, if the method determines them.
	Parts []Part
	// Warnings contains a sentence each.
	Warnings []string
}

// Part is a component of an estimate: context, weights, gradients, optimizer,
// activations, workspace, fragmentation, residual.
type Part struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
}

// Method is one way to estimate.
type Method interface {
	// Name returns the method's name on the command line.
	Name() string
	// Source names the publication of the method.
	Source() string
	// Estimate answers for one subject. If it cannot, the error wraps [ErrNotApplicable] and
	// contains the reason.
	Estimate(Subject) (Answer, error)
}

// ErrNotApplicable means that a method has no answer for a subject: it has no data for
// that family of networks, an input is missing, or a library is missing.
var ErrNotApplicable = errors.New("not applicable")
