// Package residual describes a training to the learned correction of the
// simulated memory. The features are relative to the simulation. So a training
// that is far from all learned ones gets little correction.
package residual

import (
	"math"

	"carma/configs/models"
	"carma/estimator/step"
)

// Simulated has three simulations of one training: without workspaces of the
// convolutions, with the environment's workspaces, and with twice these.
type Simulated struct {
	Plain, Point, Ample step.Result
}

// Simulate runs the three simulations of a plan. If workspaces make no difference, it
// copies one.
func Simulate(p *step.Plan, env *step.Environment) (s Simulated, err error) {
	if s.Point, err = p.Simulate(env); err != nil {
		return Simulated{}, err
	}
	s.Plain, s.Ample = s.Point, s.Point
	if !p.Workspaces() {
		return s, nil
	}
	for _, v := range []struct {
		to     *step.Result
		factor float64
	}{{&s.Plain, 0}, {&s.Ample, 2}} {
		e := *env
		e.Forward, e.Data, e.Filter, e.Weight = v.factor*e.Forward, v.factor*e.Data, v.factor*e.Filter, v.factor*e.Weight
		if *v.to, err = p.Simulate(&e); err != nil {
			return Simulated{}, err
		}
	}
	return s, nil
}

// names are the features' names, in order.
var names = []string{
	"log_point", "log_batch", "log_layers",
	"plain", "ample", "allocated", "allocated_plain",
	"weights", "gradients", "states", "activations", "workspaces",
	"largest_output", "outputs", "largest_weight", "flushed",
	"convolutions", "dense", "depthwise", "norms", "dropouts", "keep_input", "keep_output", "attention", "adds",
	"faketensor", "tracked",
}

// Names returns the features' names, in order.
func Names() []string { return names }

// Features returns the features of a training. faketensor is a tracker's peak in bytes,
// or 0.
func Features(c *models.Config, s Simulated, faketensor int64) []float32 {
	point := float64(max(s.Point.Total(), 1))
	of := func(bytes int64) float32 { return float32(float64(bytes) / point) }
	log := func(bytes int64) float32 { return float32(math.Log(float64(max(bytes, 1)) / point)) }
	n := count(c)
	f := []float32{
		float32(math.Log(point / (1 << 20))), float32(math.Log(float64(max(c.Train.Batch, 1)))), float32(math.Log(float64(len(c.Layers) + 1))),
		log(s.Plain.Total()), log(s.Ample.Total()), log(s.Point.Context + s.Point.Allocated), log(s.Plain.Context + s.Plain.Allocated),
	}
	for k := step.Weights; k <= step.Workspaces; k++ {
		f = append(f, of(s.Point.Parts[k]))
	}
	f = append(f, of(n.largest), of(n.outputs), of(n.weight), flag(s.Point.Flushes > 0))
	layers := float32(max(len(c.Layers), 1))
	for _, k := range n.kinds {
		f = append(f, float32(k)/layers)
	}
	if faketensor > 0 {
		return append(f, log(s.Point.Context+faketensor), 1)
	}
	return append(f, 0, 0)
}

func flag(b bool) float32 {
	if b {
		return 1
	}
	return 0
}

// counts are the numbers of layers by kind, and their sizes in bytes for the
// batch.
type counts struct {
	largest, outputs, weight int64
	kinds                    [9]int
}

func count(c *models.Config) counts {
	var n counts
	batch := float64(max(c.Train.Batch, 1))
	for i := range c.Layers {
		l := &c.Layers[i]
		out := 4 * batch
		for _, d := range l.Out {
			out *= float64(d)
		}
		size := int64(min(out, 1<<50))
		n.largest, n.outputs = max(n.largest, size), min(n.outputs+size, 1<<60)
		for _, p := range l.Params {
			n.weight = max(n.weight, min(p, 1<<48)*4)
		}
		if k := kindOf(l); k >= 0 {
			n.kinds[k]++
		}
		if l.Type == models.Convolution && l.Groups <= 1 && len(l.Kernel) > 0 && l.Kernel[0] > 1 {
			n.kinds[1]++
		}
	}
	return n
}

// kindOf returns the index of a layer's kind in counts, from convolutions on.
func kindOf(l *models.Layer) int {
	switch l.Type {
	case models.Convolution, models.ConvTranspose:
		if l.Groups > 1 {
			return 2
		}
		return 0
	case models.BatchNorm, models.LayerNorm, models.RMSNorm, models.GroupNorm, models.InstanceNorm:
		return 3
	case models.Dropout:
		return 4
	case models.GELU, models.SiLU, models.Mish, models.ELU, models.SELU, models.Softplus, models.LeakyReLU, models.PReLU,
		models.HardSwish, models.HardSigmoid, models.ReLU6:
		return 5
	case models.ReLU, models.Tanh, models.Sigmoid, models.Softmax:
		return 6
	case models.Attention:
		return 7
	case models.Add, models.Concat, models.Mul:
		return 8
	}
	return -1
}
