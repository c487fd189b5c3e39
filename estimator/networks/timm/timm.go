// Package timm has the layer tables of the image models of the timm library.
//
// A table lists the operations of a forward pass in training mode, the shapes of
// their outputs, and what autograd keeps for the backward pass.
// estimator/training/trace_timm.py traced them without weights and without a GPU,
// at each model's default input size; [Provenance] has the versions. timm is
// under Apache-2.0; no code of it is here.
//
// Every layer has its Keeps. A table ends at the model's output, without the
// loss.
package timm

import (
	_ "embed"
	"fmt"
	"sync"

	"carma/configs/models"
)

//go:embed tables.bin
var embedded []byte

var tables = sync.OnceValues(func() (*archive, error) { return open(embedded) })

// Table is one traced model.
type Table struct {
	Name string `json:"name"`
	// Input is the shape of one image.
	Input []int64 `json:"input"`
	// Buffers is the size in bytes of the model's tensors that are not trained.
	Buffers int64          `json:"buffers"`
	Layers  []models.Layer `json:"layers"`
}

// Info are the sizes of a model.
type Info struct {
	// Params is the number of elements of all parameters.
	Params int64
	// Buffers is the size in bytes of the tensors that are not trained.
	Buffers int64
}

// Names lists the models, sorted.
func Names() []string {
	a, err := tables()
	if err != nil {
		return nil
	}
	names := make([]string, len(a.entries))
	for i, e := range a.entries {
		names[i] = e.name
	}
	return names
}

// Provenance names the versions that made the tables.
func Provenance() string {
	a, err := tables()
	if err != nil {
		return ""
	}
	return a.provenance
}

// Stat returns the sizes of a model without reading its table. It fails with
// [ErrNotFound].
func Stat(name string) (Info, error) {
	a, err := tables()
	if err != nil {
		return Info{}, err
	}
	e, err := a.find(name)
	if err != nil {
		return Info{}, err
	}
	return e.info, nil
}

// Build returns the configuration of a model at a batch size, trained with Adam
// in FP32. The caller owns it. It fails with [ErrNotFound]. It is safe for
// concurrent use.
func Build(name string, batch int) (*models.Config, error) {
	if batch < 1 {
		return nil, fmt.Errorf("timm model %q: batch %d, must be at least 1", name, batch)
	}
	a, err := tables()
	if err != nil {
		return nil, err
	}
	t, err := a.table(name)
	if err != nil {
		return nil, err
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

// family is transformer for networks with attention, otherwise convolutional.
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
