package step

import "carma/estimator/allocator"

// Environment contains the facts on which the memory of a training depends in addition to
// the model: about the framework, the driver and the GPU. Sizes are in bytes.
type Environment struct {
	// Name is the environment's name, such as a100-2024 or a100-2025-09.
	Name string `json:"name"`
	// Capacity is the memory of the GPU that processes can allocate, or 0 if unlimited.
	Capacity int64 `json:"capacity"`
	// Context is the memory of a process before its first tensor. ConvContext is the
	// memory that the convolution library adds when it is loaded.
	Context     int64 `json:"context"`
	ConvContext int64 `json:"conv_context"`
	// CuBLAS is the workspace of a handle, allocated at the first product.
	CuBLAS int64 `json:"cublas"`
	// Forward, Data and Filter size the workspaces of a dense convolution: in its forward
	// pass, for the gradient of its input, and for the gradient of its weights. They are
	// multiples of the bytes that the convolution reads and writes. Weight is a multiple of
	// the bytes of its weights, added in every pass. For real models, 2 (input and output)
	// and 1 (weights) fit PyTorch of 2024 and of 2025. For the generated networks of the
	// GPUMemNet data, with odd numbers of channels, 0.5 fits in the forward pass, and 1 for
	// the gradient of the input.
	Forward float64 `json:"forward"`
	Data    float64 `json:"data"`
	Filter  float64 `json:"filter"`
	Weight  float64 `json:"weight"`
	// WorkspaceLimit is the largest size of a workspace, in bytes, or 0 for no limit.
	WorkspaceLimit int64 `json:"workspace_limit"`
	// Allocator contains the settings of PyTorch's allocator. If its limit is 0, the limit
	// is the capacity minus the context.
	Allocator allocator.Options `json:"allocator"`
}

// ContextFor returns the memory of a process without any tensor, in bytes.
func (e *Environment) ContextFor(convolutions bool) int64 {
	if convolutions {
		return e.Context + e.ConvContext
	}
	return e.Context
}
