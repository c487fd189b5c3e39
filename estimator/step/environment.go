package step

import "carma/estimator/allocator"

// Environment holds what the memory of a training depends on besides the
// model: the framework, the driver and the GPU. Sizes are in bytes.
type Environment struct {
	// Name: a100-2024, a100-2025-09, ...
	Name string `json:"name"`
	// Capacity is the memory of the GPU that processes can have; 0: no end.
	Capacity int64 `json:"capacity"`
	// Context is what a process has before its first tensor; ConvContext what
	// the convolution library adds to it when it is loaded.
	Context     int64 `json:"context"`
	ConvContext int64 `json:"conv_context"`
	// CuBLAS is the workspace of a handle, allocated with the first product.
	CuBLAS int64 `json:"cublas"`
	// Forward, Data and Filter are the workspaces of a dense convolution, in
	// its forward pass, for the gradient of its input and for that of its
	// weights, as multiples of what it reads and writes; Weight is the same of
	// the weights, in every pass.
	Forward float64 `json:"forward"`
	Data    float64 `json:"data"`
	Filter  float64 `json:"filter"`
	Weight  float64 `json:"weight"`
	// WorkspaceLimit bounds a workspace; 0: no bound.
	WorkspaceLimit int64 `json:"workspace_limit"`
	// Allocator are the settings of PyTorch's allocator. Its limit, where 0, is
	// the capacity less the context.
	Allocator allocator.Options `json:"allocator"`
}

// ContextFor is the memory of a process without any tensor.
func (e *Environment) ContextFor(convolutions bool) int64 {
	if convolutions {
		return e.Context + e.ConvContext
	}
	return e.Context
}
