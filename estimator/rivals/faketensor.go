package rivals

import (
	"slices"

	"carma/configs/models"
	"carma/estimator/methods"
	"carma/estimator/step"
)

// FakeTensor simulates a memory tracker over PyTorch's fake tensors. The tracker counts
// the bytes of a storage from its first tensor until its last Python tensor object is
// destroyed. The answer is the peak over one forward pass and one backward pass of the
// summed output.
//
// It counts no optimizer, no rounding, no workspace and no context. It also misses
// tensors that only the autograd graph holds. These are results saved by the layer that
// made them (ReLU's output, masks), because autograd saves them as detached copies.
// Inputs saved by a layer are counted, because the graph keeps their tensor object alive.
// The indices of max pooling are counted too.
//
// If a tracker was run on exactly this configuration, the answer is its number. The
// tensors with a Python object were inferred from the published numbers.
type FakeTensor struct{}

// Name returns faketensor.
func (FakeTensor) Name() string { return "faketensor" }

// Source names the method's publication.
func (FakeTensor) Source() string {
	return "PyTorch FakeTensorMode with a memory tracker, as tabulated in itu-rad/GPUMemNet; simulated here"
}

// Estimate returns the tracker's number, or simulates the tracker.
func (FakeTensor) Estimate(s methods.Subject) (methods.Answer, error) {
	if s.FakeTensor > 0 {
		return exactly(methods.Part{Name: "tracked", Bytes: s.FakeTensor})
	}
	c, n, err := config(s)
	if err != nil {
		return methods.Answer{}, err
	}
	layers := slices.Clone(c.Layers)
	for i := range layers {
		l := &layers[i]
		if l.Type == models.CrossEntropy {
			l.Type = models.Mean // the sum of the output
		}
		l.Keeps = trackedKeeps(l)
	}
	layers = closed(layers, models.Mean)
	r, err := step.Simulate(alone(c, n, layers, models.SGD), &step.Environment{})
	if err != nil {
		return methods.Answer{}, err
	}
	return exactly(
		methods.Part{Name: "weights", Bytes: r.Parts[step.Weights]}, methods.Part{Name: "gradients", Bytes: r.Parts[step.Gradients]},
		methods.Part{Name: "activations", Bytes: r.Parts[step.Activations]},
	)
}

// alone returns c with other layers and the optimizer o, on one GPU with that GPU's batch.
func alone(c *models.Config, n counts, layers []models.Layer, o models.Optimizer) *models.Config {
	one := *c
	one.Layers = layers
	one.Train = models.Train{
		Batch: int(n.batch), Precision: c.Train.Precision, Optimizer: o, Implementation: "fused",
		Checkpointing: c.Train.Checkpointing,
	}
	return &one
}

// closed appends a loss of the type kind, and a second loss whose input is the first. With
// the second loss, the simulation frees the input of the first like any other tensor.
func closed(layers []models.Layer, kind string) []models.Layer {
	if k := len(layers); k == 0 || layers[k-1].Type != kind && layers[k-1].Type != models.Loss {
		layers = append(layers, models.Layer{Type: kind, Out: []int64{1}, Whole: true, Keeps: &models.Keeps{}})
	}
	return append(layers, models.Layer{Type: models.Loss, Out: []int64{1}, Whole: true})
}

// trackedKeeps lists the tensors with a Python object that a layer keeps for its
// gradient.
func trackedKeeps(l *models.Layer) *models.Keeps {
	k := &models.Keeps{}
	switch l.Type {
	case models.Convolution, models.ConvTranspose, models.Linear:
		if l.Frozen || len(l.Params) == 0 {
			return k
		}
	case models.MaxPool:
		if n, ok := elements(l.Out); ok {
			k.Bytes = min(8*n, most) // indices
		}
	case models.MatMul, models.Mul, models.Attention, models.Recurrent, models.BatchNorm, models.LayerNorm,
		models.RMSNorm, models.GroupNorm, models.InstanceNorm, models.AvgPool:
	case models.ReLU6, models.LeakyReLU, models.PReLU, models.ELU, models.SELU, models.GELU, models.SiLU,
		models.Mish, models.Softplus, models.HardSwish, models.HardSigmoid:
		if n, ok := elements(l.Out); ok && l.InPlace {
			k.Bytes = min(4*n, most) // a copy of the overwritten input
			return k
		}
	default:
		return k
	}
	for i := range max(len(l.Inputs), 1) {
		k.Inputs = append(k.Inputs, i)
	}
	return k
}
