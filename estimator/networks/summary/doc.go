// Package summary reads the texts that torchsummary, torchinfo and
// pytorch-model-summary print, and printed module trees, as networks. None of
// them has all that a network is: what the numbers prove is inferred, the rest
// assumed and said in warnings.
package summary
