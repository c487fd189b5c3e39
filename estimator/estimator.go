// Package estimator predicts, before a task runs, its peak GPU memory on each of its
// GPUs.
//
// Every estimator answers the same [Query] with the same [Estimate]: a point and an upper
// bound, which is allocated. This package contains the [Catalogue] of measured values and
// the estimate from earlier runs at other batch sizes ([FromRuns]). The sub-packages
// contain the methods that examine a network. Nothing here decides about GPUs.
package estimator

import (
	"carma/configs/models"
	"carma/internal/units"
	"carma/mapper/model"
	"carma/mapper/predict"
)

// Query contains the known facts about a task.
type Query struct {
	// Declared is the user's declared memory per GPU, or 0.
	Declared units.Bytes
	// Model names a model (resnet50), a model on a data set (efficientnet_b0/cifar100) or
	// a workload, or is empty if unknown.
	Model string
	// Described is the description of the network, if Model is not a known name, or empty.
	// See package described of estimator/networks.
	Described []byte
	// Settings contains the given settings of the training. Its Batch, if it differs from
	// Batch, is the batch size of all GPUs together. Its GPUs are not used.
	Settings models.Overrides
	// Read describes the facts read from the program's command line, or is empty.
	Read string
	// Batch is the batch size, or 0 if unknown.
	Batch int
	// Few contains figures of a model without a name.
	Few Few
	// Estimator names the method to use, or is empty for the default.
	Estimator string
	// GPUs is the number of GPUs on which the task runs, or 0 if unknown.
	GPUs int
	// Network is the network that a probe of the task's program found, or nil if unknown.
	// It takes precedence over Model.
	Network *models.Config
	// Runs are earlier runs of the same program at other batch sizes.
	Runs []Run
	// Measured lists the errors of estimates in earlier runs on this machine, the oldest
	// first.
	Measured []predict.EstimateError
}

// Few contains a few figures of a model that is in no catalogue. In the zero value, all
// of them are unknown.
type Few struct {
	// Params is its number of parameters, or 0 if unknown.
	Params int64
	// Family is mlp, cnn or transformer, or empty if unknown.
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
	// Point is the likeliest value, at most Memory, or 0 if WholeGPU is set.
	Point units.Bytes
	// WholeGPU is set if there is no estimate, so that the task should not share its GPUs.
	WholeGPU bool
	// Large is set if the task needs, or may need, more memory than a shared GPU has. If
	// WholeGPU is set and Large is not, the task's memory is unknown.
	Large bool
	// Method is the origin of the number: declared, catalogue, whole-gpu, or the
	// name of the estimator.
	Method string
	// Loose is set if the bound is far above the point. If the bound exceeds every GPU, the
	// task may still fit, so it gets whole GPUs.
	Loose bool
	// Plain is the estimate before correction by earlier runs here, or empty if a run cannot
	// measure it. Same and Others count the runs of the model and of other models that have
	// corrected it.
	Plain        model.RawEstimate
	Same, Others int
	// Share is the part of a GPU's whole memory that the task by design takes, in
	// millionths, or 0. If it is set, Memory is the amount on the smallest GPU.
	Share int64
	// Exact is set if the memory was measured at the requested batch size.
	Exact bool
	// Detail is one sentence for people about the origin.
	Detail string
}
