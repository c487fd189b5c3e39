// Package models describes the networks that tasks train. A model configuration is a
// table of layers, with shapes and parameters, and the settings of the training (batch,
// precision, optimizer, parallelism).
//
// Configurations come from files (docs/estimators.md has the format) or from the packages
// of estimator/networks: the catalogue, and the reader of config.json files of the
// transformers library. Package models computes no memory. Package estimator computes it,
// and the tensors that a layer keeps for the backward pass.
package models
