// Package safetensors reads the headers of safetensors files: names, types and shapes
// of tensors, from which it counts parameters and their bits. Weights are not read.
//
// A file is 8 bytes with the length of the header (unsigned, the lowest first), the
// header in JSON, and the numbers (the format's description, safetensors 0.8). An index
// (model.safetensors.index.json) names the file of each tensor.
package safetensors
