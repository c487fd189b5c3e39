// Package onnxfile makes model configurations of ONNX files: the graph, the
// shapes of its tensors and the sizes of its weights, but no weights.
//
// A file is read as a stream of protobuf fields in which the data of weights
// is skipped, so files of any size take little memory, and weights that are
// in other files are not looked for. Shapes follow from the inputs by
// inference; what exporters make of PyTorch's layers (layer norm, GELU,
// attention) is put together again.
//
// It knows nothing of memory, and it does not run models.
package onnxfile
