// Package models describes the networks that tasks train: a model
// configuration is a table of layers with shapes and parameters and the
// settings of the training (batch, precision, optimizer, parallelism).
//
// Configurations come from files (docs/models.md documents the format), from
// the catalogue of parametric families, or are imported from the summaries
// that torchsummary, torchinfo and a printed module tree give, and from ONNX
// files by package onnxfile. Package models knows nothing of memory: what a
// layer keeps for the backward pass, and what that costs, is package
// estimator's.
package models
