// Package graph builds the layer list of a network. A builder gets a [Graph], declares
// the inputs of a batch, and adds the operations of the forward pass with the methods of
// the graph: graph.go contains operations on any tensor, images.go on images, tokens.go
// on tokens. adapters.go contains the linear layers that may get adapters (LoRA). The
// graph's methods refer to layers and inputs by index; the indexes of inputs are
// negative.
//
// A [Network] is a builder with its default sizes. [Network.Config] applies the user's
// changes, runs the builder and returns the configuration.
//
// The packages vision, transformer, detection and diffusion contain the builders of each
// family; package zoo is the catalogue of their names.
package graph
