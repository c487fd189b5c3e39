// Package onnxfile makes model configurations from ONNX files: from the graph,
// the shapes of its tensors and the sizes of its weights, but without the
// weights.
//
// A file is read as a stream of protobuf fields, and the data of weights is
// skipped. So a file of any size takes little memory, and weights in other files
// are not needed. Shapes are inferred from the inputs. Exporters split some
// layers of PyTorch into several operators (layer norm, GELU, attention); these
// are joined again.
//
// The package knows nothing about memory, and does not run models.
package onnxfile
