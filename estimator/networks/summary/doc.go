// Package summary reads networks from the texts of torchsummary, torchinfo and
// pytorch-model-summary, and from printed module trees. None of these describes a
// network completely. Missing facts are inferred if the numbers prove them.
// Otherwise they are assumed, and warnings say so.
package summary
