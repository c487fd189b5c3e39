// Package estimator predicts, before a task runs, how much GPU memory it will
// use at its peak on each of its GPUs.
//
// Every estimator answers the same [Query] with the same [Estimate]: a point
// and an upper bound, which is what gets booked. Here are the [Catalogue] of
// measured values and what earlier runs at other batch sizes tell ([FromRuns]);
// the methods that look at a network are in the packages below. Nothing here
// decides about GPUs.
package estimator

import (
	"carma/configs/models"
	"carma/mapper"
	"carma/mapper/units"
)

// Query is what is known about a task.
type Query struct {
	// Declared is the user's own figure per GPU; 0: none.
	Declared units.Bytes
	// Model names a model (resnet50), a model on a data set
	// (efficientnet_b0/cifar100) or a workload; empty: unknown.
	Model string
	// Batch is the batch size; 0: unknown.
	Batch int
	// Few are figures of a model without a name.
	Few Few
	// Estimator names the method to ask; empty: the default.
	Estimator string
	// GPUs is the number of GPUs the task runs on; 0: unknown.
	GPUs int
	// Network is what the task's own program was seen to train; nil: not
	// known. It counts for more than Model.
	Network *models.Config
	// Runs are earlier ones of the same program at other batch sizes.
	Runs []Run
}

// Few are what may be known of a model that is in no catalogue; the zero value:
// nothing.
type Few struct {
	// Params is its number of parameters; 0: unknown.
	Params int64
	// Family: mlp, cnn or transformer; empty: unknown.
	Family string
	// Input is the number of elements of one sample, Layers that of
	// convolutions and linear layers; 0: unknown.
	Input  int64
	Layers int
}

// Methods of an estimate.
const (
	Declared  = string(mapper.Declared)
	Measured  = "catalogue"
	WholeGPUs = "whole-gpu"
)

// Estimate is a task's predicted peak memory per GPU.
type Estimate struct {
	// Memory is an upper bound; 0 when WholeGPU.
	Memory units.Bytes
	// Point is the likeliest value, at most Memory; 0 when WholeGPU.
	Point units.Bytes
	// WholeGPU: nothing can be said, the task should have GPUs of its own.
	WholeGPU bool
	// Method is where the number comes from: declared, catalogue, whole-gpu, or
	// the name of the estimator that was asked.
	Method string
	// Loose: the bound is so wide that a task whose bound no GPU has may well
	// fit; it gets whole GPUs.
	Loose bool
	// Detail says the same in one sentence for people.
	Detail string
}
