// Package figures estimates a training from only a few figures: the number of parameters,
// the family and the batch size; perhaps the size of a sample and the number of layers.
// The model is learned from measured trainings (estimator/training/figures.py; card.json
// contains its errors). If the layers are known, estimator carma is far better.
//
// Gradient-boosted trees predict the memory beyond the context, relative to the
// parameters: its median and an upper quantile, which was widened until it held for 95 %
// of the networks outside the training data. The data used Adam in FP32 on one GPU. Other
// optimizers' states, autocast's copies of the weights and DDP's buckets are computed,
// and half precision is treated as FP32. Beyond the largest measured batch or sample, the
// memory that is not parameters grows in proportion, and a note says so. Among
// transformers, only networks for images were measured.
package figures

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"carma/configs/models"
	"carma/estimator/step"
)

// Figures contains the known figures of a training.
type Figures struct {
	// Family is the family of the network: mlp, cnn or transformer.
	Family models.Family
	// Params is the number of parameters, all of them trained; at least 1.
	Params int64
	// Batch is the number of samples of a step on all GPUs together; at least 1.
	Batch int
	// Input is the number of elements of one sample, or 0 if unknown.
	Input int64
	// Layers is the number of convolutions and linear layers, or 0 if unknown.
	Layers int
	// Optimizer and Precision default to adam and fp32, as in the measured trainings.
	Optimizer models.Optimizer
	Precision models.Precision
	// GPUs is the number of GPUs that share the batch, or 0 for one.
	GPUs int
}

// families lists the learned families, in the order of their codes in the features.
var families = []models.Family{models.MLP, models.Conv, models.Transformer}

// Families returns the names of the learned families.
func Families() []string {
	var out []string
	for _, f := range families {
		out = append(out, string(f))
	}
	return out
}

// Limits of the figures; a larger figure is a typing error.
const (
	mostParams = 1 << 43
	mostBatch  = 1 << 30
	mostInput  = 1 << 40
	mostLayers = 1 << 20
)

// ErrFamily means that there is no learned model for this family of networks.
var ErrFamily = errors.New("no few-figures model of this family")

// Check returns an error of one line, or nil. The error of an unknown family is
// [ErrFamily].
func (f Figures) Check() error {
	switch {
	case !slices.Contains(families, f.Family):
		return fmt.Errorf("family %q: %w; there are %v", f.Family, ErrFamily, Families())
	case f.Params < 1 || f.Params > mostParams:
		return fmt.Errorf("%d parameters: it takes 1 to 8T", f.Params)
	case f.Batch < 1 || f.Batch > mostBatch:
		return fmt.Errorf("batch size %d: it takes 1 to %d", f.Batch, mostBatch)
	case f.Input < 0 || f.Input > mostInput:
		return fmt.Errorf("a sample of %d elements: it takes up to %d", f.Input, int64(mostInput))
	case f.Layers < 0 || f.Layers > mostLayers:
		return fmt.Errorf("%d layers: it takes up to %d", f.Layers, mostLayers)
	}
	return nil
}

// Of returns all figures of a configuration.
func Of(c *models.Config) Figures {
	f := Figures{Family: c.Family, Params: c.Params(), Batch: c.Train.Batch, Optimizer: c.Train.Optimizer, Precision: c.Train.Precision, GPUs: c.Train.GPUs}
	if len(c.Inputs) > 0 {
		f.Input = 1
		for _, d := range c.Inputs[0].Shape {
			f.Input *= d
		}
	}
	for i := range c.Layers {
		switch c.Layers[i].Type {
		case models.Convolution, models.ConvTranspose, models.Linear:
			f.Layers++
		}
	}
	return f
}

// names lists the features' names, in order. An unknown figure has the value unknown.
var names = []string{"family_code", "log_params", "log_batch", "log_input", "log_batch_input", "log_layers", "log_params_layer"}

const unknown = -1

// Names returns the features' names, in order.
func Names() []string { return names }

// Features returns the features of a training, in the order of [Names].
func Features(f Figures) []float32 {
	batch := float64(f.batch())
	x := []float64{
		float64(slices.Index(families, f.Family)), math.Log(float64(f.Params)), math.Log(batch), unknown, unknown, unknown, unknown,
	}
	if f.Input > 0 {
		x[3], x[4] = math.Log(float64(f.Input)), math.Log(batch*float64(f.Input))
	}
	if f.Layers > 0 {
		x[5], x[6] = math.Log(float64(f.Layers)), math.Log(float64(f.Params)/float64(f.Layers)+1)
	}
	out := make([]float32, len(x))
	for i, v := range x {
		// Rounded, so that single precision cannot move a value across a tree's threshold.
		out[i] = float32(math.Round(v*1000) / 1000)
	}
	return out
}

// batch returns the number of samples on one GPU.
func (f Figures) batch() int {
	gpus := max(f.GPUs, 1)
	return (f.Batch-1)/gpus + 1
}

// Context returns the memory of a process of this family before its first tensor, in bytes. The
// learned memory is added to it.
func Context(family models.Family, env *step.Environment) int64 {
	return env.ContextFor(family != models.MLP)
}

// learned is the memory per parameter with Adam in FP32 during the optimizer's
// step, in bytes: weight, gradient, two states, a temporary copy. The trees'
// answers are relative to it.
const learned = 20

// Scale returns the memory in bytes to which the trees' answers are relative.
func Scale(f Figures) int64 { return learned * f.Params }
