// Package estimator predicts, before a task runs, how much GPU memory it will use
// at its peak on each of its GPUs.
//
// Every estimator answers the same [Query] with the same [Estimate]: a point and an upper
// bound, which is allocated. This package has the [Catalogue] of measured values and the
// estimate from earlier runs at other batch sizes ([FromRuns]). The packages below have
// the methods that look at a network. Nothing here decides about GPUs.
package estimator

import (
	"carma/configs/models"
	"carma/internal/units"
	"carma/mapper"
	"carma/mapper/model"
)

// Query has the known facts about a task.
type Query struct {
	// Declared is the user's own figure per GPU, or 0.
	Declared units.Bytes
	// Model names a model (resnet50), a model on a data set (efficientnet_b0/cifar100) or
	// a workload, or is empty if unknown.
	Model string
	// Described is the description of the network that Model stands for, or empty if
	// Model is a known name. See package described of estimator/networks.
	Described []byte
	// Settings are the given settings of the training. Its Batch is the batch size of all
	// GPUs together, if it differs from Batch; its GPUs are not used.
	Settings models.Overrides
	// Read describes the facts above that come from the program's command line, or is empty.
	Read string
	// Batch is the batch size, or 0 if unknown.
	Batch int
	// Few has figures of a model without a name.
	Few Few
	// Estimator names the method to use, or is empty for the default.
	Estimator string
	// GPUs is the number of GPUs the task runs on, or 0 if unknown.
	GPUs int
	// Network is the network that a probe of the task's program found, or nil if unknown.
	// It takes precedence over Model.
	Network *models.Config
	// Runs are earlier runs of the same program at other batch sizes.
	Runs []Run
	// Measured are the errors of estimates in earlier runs on this machine, the oldest
	// first.
	Measured []mapper.EstimateError
}

// Few has a few figures of a model that is in no catalogue. In the zero value, all of them
// are unknown.
type Few struct {
	// Params is its number of parameters, or 0 if unknown.
	Params int64
	// Family: mlp, cnn or transformer, or empty if unknown.
	Family string
	// Input is the number of elements of one sample. Layers is the number of convolutions
	// and linear layers. Both are 0 if unknown.
	Input  int64
	Layers int
}

// Methods of an estimate.
const (
	Declared  = string(model.Declared)
	Measured  = "catalogue"
	WholeGPUs = "whole-gpu"
	NoGPU     = "no-gpu" // the task gets no GPU
)

// Estimate is a task's predicted peak memory per GPU.
type Estimate struct {
	// Memory is an upper bound, which is allocated, or 0 if WholeGPU.
	Memory units.Bytes
	// Point is the likeliest value, at most Memory; 0 if WholeGPU.
	Point units.Bytes
	// WholeGPU says that there is no estimate, so the task should not share its GPUs.
	WholeGPU bool
	// Large says why WholeGPU is set. If true, the task needs, or may need, more memory
	// than a shared GPU has. If false, the task's memory is unknown.
	Large bool
	// Method is the origin of the number: declared, catalogue, whole-gpu, or the
	// name of the estimator.
	Method string
	// Loose says that the bound is far above the point. If the bound exceeds every GPU, the
	// task may still fit, so it gets whole GPUs.
	Loose bool
	// Plain is the estimate before earlier runs here corrected it, or empty if a run
	// cannot measure it. Same and Others count the runs of the model and of others that
	// have corrected it.
	Plain        model.RawEstimate
	Same, Others int
	// Share is the part of a GPU's whole memory that the task takes by design, in
	// millionths, or 0. If it is set, Memory is the amount on the smallest GPU.
	Share int64
	// Exact says that the memory was measured at the requested batch size.
	Exact bool
	// Detail is one sentence for people about the origin.
	Detail string
}
