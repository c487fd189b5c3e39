// Package step simulates the GPU memory of a training step. It walks the layers of a
// model configuration forwards and backwards like PyTorch's autograd, keeps the tensors
// that each layer needs for its gradient, and runs the optimizer. Every allocation goes
// to the caching allocator of package allocator.
//
// The tensors that a layer keeps follow PyTorch's derivative formulas
// (tools/autograd/derivatives.yaml, PyTorch 1.13 to 2.x): a convolution keeps its input,
// ReLU its output, GELU its input. A tensor that several layers keep is stored once.
package step
