package rivals

import (
	"fmt"

	"carma/configs/models"
	"carma/estimator/methods"
)

// Horus is the estimate of Horus (Yeung et al., TPDS 33(1), DOI
// 10.1109/TPDS.2021.3079202): the sum of activations, weights and gradients, as tabulated
// by the authors of GPUMemNet:
//
//	800 MiB + 4 B x (A x B + P + B x G)
//
// A is the number of elements of a sample's outputs, B the batch, P the parameters, and G
// = P the gradients, which the formula multiplies by the batch. A leaves out max pooling,
// views and additions.
type Horus struct {
	// Constant is the CUDA context in bytes. It is 800 MiB in the published tables, which
	// omit it for UNet, Mask R-CNN and DLRM.
	Constant int64
}

// Name returns "horus".
func (Horus) Name() string { return "horus" }

// Source names the method's publication.
func (Horus) Source() string {
	return "Yeung et al., TPDS 33(1), DOI 10.1109/TPDS.2021.3079202; constant as tabulated in itu-rad/GPUMemNet"
}

// Estimate computes the formula.
func (h Horus) Estimate(s methods.Subject) (methods.Answer, error) {
	c, n, err := config(s)
	if err != nil {
		return methods.Answer{}, err
	}
	var a, activations, gradients sum
	for i, l := range c.Layers {
		if !horusCounts(l.Type) {
			continue
		}
		out, ok := elements(l.Out)
		if a.add(out); !ok || a.bad {
			return methods.Answer{}, fmt.Errorf("layer %d (%s): output of shape %v is out of range", i+1, l.Type, l.Out)
		}
	}
	activations.add(4, a.n, n.batch)
	gradients.add(4, n.params, n.batch)
	if activations.bad || gradients.bad {
		return methods.Answer{}, fmt.Errorf("model %s at batch size %d is out of range", c.Name, n.batch)
	}
	return exactly(
		methods.Part{Name: "context", Bytes: h.Constant}, methods.Part{Name: "weights", Bytes: 4 * n.params},
		methods.Part{Name: "gradients", Bytes: gradients.n}, methods.Part{Name: "activations", Bytes: activations.n},
	)
}

// horusCounts reports whether Horus counts the outputs of such layers as
// activations.
func horusCounts(kind string) bool {
	switch kind {
	case models.MaxPool, models.View, models.Add, models.Mul, models.Concat, models.Copy, models.Pad, models.Upsample,
		models.CrossEntropy, models.Loss, models.OtherLayer:
		return false
	}
	return true
}
