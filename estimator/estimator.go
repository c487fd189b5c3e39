// Package estimator predicts, before a task runs, how much GPU memory it will use
// at its peak on each of its GPUs.
//
// Every estimator answers the same [Query] with the same [Estimate]: a point and
// an upper bound, which is booked. This package has the [Catalogue] of measured
// values and the estimate from earlier runs at other batch sizes ([FromRuns]).
// The packages below have the methods that look at a network. Nothing here
// decides about GPUs.
package estimator

import (
	"carma/configs/models"
	"carma/internal/units"
	"carma/mapper"
)

// Query is what is known about a task.
type Query struct {
	// Declared is the user's own figure per GPU; 0: none.
	Declared units.Bytes
	// Model names a model (resnet50), a model on a data set
	// (efficientnet_b0/cifar100) or a workload; empty: unknown.
	Model string
	// Described is the description of the network that Model stands for; empty: Model
	// is a known name. See package described of estimator/networks.
	Described []byte
	// Settings of the training that were given. Its Batch is that of all GPUs
	// together, if it is another than Batch; its GPUs are not used.
	Settings models.Overrides
	// Read says in words what of this the program's command line says; empty: nothing.
	Read string
	// Batch is the batch size; 0: unknown.
	Batch int
	// Few are figures of a model without a name.
	Few Few
	// Estimator names the method to ask; empty: the default.
	Estimator string
	// GPUs is the number of GPUs the task runs on; 0: unknown.
	GPUs int
	// Network is the network that a probe of the task's program found; nil:
	// unknown. It counts more than Model.
	Network *models.Config
	// Runs are earlier runs of the same program at other batch sizes.
	Runs []Run
	// Measured are what earlier runs on this machine say about their estimates, the
	// oldest first.
	Measured []mapper.EstimateError
}

// Few are a few figures of a model that is in no catalogue; the zero value:
// nothing is known.
type Few struct {
	// Params is its number of parameters; 0: unknown.
	Params int64
	// Family: mlp, cnn or transformer; empty: unknown.
	Family string
	// Input is the number of elements of one sample. Layers is the number of
	// convolutions and linear layers. 0: unknown.
	Input  int64
	Layers int
}

// Methods of an estimate.
const (
	Declared  = string(mapper.Declared)
	Measured  = "catalogue"
	WholeGPUs = "whole-gpu"
	NoGPU     = "no-gpu" // it gets none
)

// Estimate is a task's predicted peak memory per GPU.
type Estimate struct {
	// Memory is an upper bound, which is booked; 0 if WholeGPU.
	Memory units.Bytes
	// Point is the likeliest value, at most Memory; 0 if WholeGPU.
	Point units.Bytes
	// WholeGPU: there is no estimate. The task should have GPUs of its own.
	WholeGPU bool
	// Large, with WholeGPU: it needs, or may need, more than a GPU that it shares
	// can give. Else nothing is known.
	Large bool
	// Method is the origin of the number: declared, catalogue, whole-gpu, or the
	// name of the estimator.
	Method string
	// Loose: the bound is very wide. If it exceeds every GPU, the task may still
	// fit; so it gets whole GPUs.
	Loose bool
	// Plain is the estimate before earlier runs here corrected it; empty: it is none
	// that a run can measure. Same and Others count the runs of the model and of
	// others that have corrected it.
	Plain        mapper.RawEstimate
	Same, Others int
	// Share is the part of a GPU's whole memory that it takes by design, in millionths;
	// Memory is then that of the smallest GPU. 0: none.
	Share int64
	// Exact: it was measured at the batch size that was asked for.
	Exact bool
	// Detail is one sentence for people about the origin.
	Detail string
}
