// Package timm contains the layer tables of the timm library's image models.
//
// A table lists the operations of a forward pass in training mode, the shapes of their
// outputs, and the tensors that autograd keeps for the backward pass.
// estimator/training/trace_timm.py traced them without weights and without a GPU, at each
// model's default input size; [Provenance] returns the versions. timm is under
// Apache-2.0; this package contains none of its code.
//
// Every layer has its Keeps. A table ends at the model's output, without the loss.
package timm

import (
	"errors"
	"fmt"

	"carma/configs/models"
)

// Table is one traced model.
type Table struct {
	Name string `json:"name"`
	// Input is the shape of one image.
	Input  []int64        `json:"input"`
	Layers []models.Layer `json:"layers"`
}

// ErrNotFound means that there is no table of a model.
var ErrNotFound = errors.New("no such timm model")

// Names lists the models, sorted.
func Names() []string {
	var names []string
	for _, c := range tables().Chunks {
		names = append(names, c.Names...)
	}
	return names
}

// Known reports whether there is a table of a model.
func Known(name string) bool { return tables().chunk(name) != nil }

// Provenance names the versions that made the tables.
func Provenance() string { return tables().Provenance }

// Build returns the configuration of a model at a batch size, trained with Adam
// in FP32. The caller owns it. It fails with [ErrNotFound]. It is safe for
// concurrent use.
func Build(name string, batch int) (*models.Config, error) {
	if batch < 1 {
		return nil, fmt.Errorf("timm model %q: batch %d, must be at least 1", name, batch)
	}
	t, err := tables().table(name)
	if err != nil {
		return nil, fmt.Errorf("timm model %q: %w", name, err)
	}
	return &models.Config{
		Schema: models.Schema,
		Name:   name,
		Family: family(t.Layers),
		Origin: "trace",
		Train:  models.Train{Batch: batch, Precision: models.FP32, Optimizer: models.Adam},
		Inputs: []models.Input{{Shape: t.Input}},
		Layers: t.Layers,
	}, nil
}

// family returns transformer for networks with attention, otherwise convolutional.
func family(layers []models.Layer) models.Family {
	var attention, softmax, product, conv bool
	for _, l := range layers {
		switch l.Type {
		case models.Attention:
			attention = true
		case models.Softmax:
			softmax = true
		case models.MatMul:
			product = true
		case models.Convolution:
			conv = true
		}
	}
	switch {
	case attention || softmax && product:
		return models.Transformer
	case conv:
		return models.Conv
	}
	return models.Other
}
