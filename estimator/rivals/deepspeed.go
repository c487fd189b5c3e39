package rivals

import (
	"fmt"

	"carma/configs/models"
	"carma/estimator/methods"
)

// DeepSpeed is the memory of the model's states (weights, gradients, Adam in mixed
// precision) on each of N GPUs, in bytes. P is the number of parameters, L the number in
// the largest layer.
//
//	no ZeRO   16 P             Rajbhandari et al., SC '20, arXiv 1910.02054
//	stage 1   4 P + 12 P / N   the same
//	stage 2   4 P + 16 P / N   estimate_zero2_model_states_mem_needs, no offload
//	stage 3   4 L + 18 P / N   estimate_zero3_model_states_mem_needs, no offload
//
// The formula leaves out activations, context and workspaces. Frozen weights count like
// trained weights, as in DeepSpeed's functions.
type DeepSpeed struct{}

// Name returns deepspeed.
func (DeepSpeed) Name() string { return "deepspeed" }

// Source names the method's publication.
func (DeepSpeed) Source() string {
	return "ZeRO, arXiv 1910.02054; DeepSpeed documentation, memory requirements"
}

// Estimate computes the formula for the training's ZeRO stage.
func (DeepSpeed) Estimate(s methods.Subject) (methods.Answer, error) {
	c, n, err := config(s)
	if err != nil {
		return methods.Answer{}, err
	}
	switch c.Train.Optimizer {
	case "", models.Adam, models.AdamW:
	default:
		return methods.Answer{}, fmt.Errorf("optimizer %s, the formulas are Adam's: %w", c.Train.Optimizer, methods.ErrNotApplicable)
	}
	if n.params > most/32 {
		return methods.Answer{}, fmt.Errorf("%d parameters are out of range", n.params)
	}
	p := n.params
	var a methods.Answer
	switch c.Train.Parallel {
	case models.ZeRO1:
		a, err = exactly(methods.Part{Name: "weights", Bytes: 2 * p}, methods.Part{Name: "gradients", Bytes: 2 * p}, methods.Part{Name: "optimizer", Bytes: 12 * p / n.gpus})
	case models.ZeRO2:
		a, err = exactly(methods.Part{Name: "weights", Bytes: 4 * p}, methods.Part{Name: "gradients and optimizer", Bytes: 16 * p / n.gpus})
	case models.ZeRO3:
		a, err = exactly(methods.Part{Name: "largest layer", Bytes: 4 * n.largest}, methods.Part{Name: "states", Bytes: 18 * p / n.gpus})
	default:
		a, err = exactly(methods.Part{Name: "weights", Bytes: 2 * p}, methods.Part{Name: "gradients", Bytes: 2 * p}, methods.Part{Name: "optimizer", Bytes: 12 * p})
	}
	a.Warnings = []string{"Activations and the context are not in this estimate."}
	return a, err
}
