// Package models describes the networks that tasks train: a model
// configuration is a table of layers with shapes and parameters and the
// settings of the training (batch, precision, optimizer, parallelism).
//
// Configurations are files (docs/models.md documents the format), or come from
// the packages of estimator/networks: the catalogue, and the readers of
// summaries and ONNX files. Package models knows nothing of memory: what a layer
// keeps for the backward pass, and what that costs, is package estimator's.
package models
