// Package step simulates the GPU memory of a training step: it walks the
// layers of a model configuration forwards and backwards as PyTorch's autograd
// does, keeps what each layer keeps for its gradient, runs the optimizer, and
// feeds every allocation to the caching allocator of package allocator.
//
// What a layer keeps follows PyTorch's derivative formulas
// (tools/autograd/derivatives.yaml, PyTorch 1.13 to 2.x): a convolution its
// input, ReLU its output, GELU its input. A tensor that several layers keep is
// stored once.
package step
