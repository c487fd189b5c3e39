package figures

import "carma/configs/models"

// perParameter returns the memory in bytes per parameter in FP32 of weight, gradient and
// optimizer's states (docs/estimators.md).
func perParameter(o models.Optimizer) float64 {
	switch o {
	case models.NoOptimizer, models.SGD, models.Adafactor, models.PagedAdamW, models.PagedAdamW8:
		return 8
	case models.SGDMomentum, models.RMSprop, models.Adagrad, models.Lion:
		return 12
	case models.Lion8bit:
		return 9
	case models.Adam8bit, models.AdamW8bit:
		return 10
	}
	return adam
}

// adam is the memory in bytes per parameter with Adam in FP32: weight, gradient
// and two states.
const adam = 16

// least returns the memory of the parameters alone, in bytes.
func (f Figures) least() float64 {
	if f.halfWeights() {
		return perParameter(f.Optimizer) / 2 * float64(f.Params)
	}
	return perParameter(f.Optimizer) * float64(f.Params)
}

func (f Figures) halfWeights() bool { return f.Precision == models.BF16 || f.Precision == models.FP16 }

// settings returns the memory in bytes that other settings add to a training with Adam in
// FP32 on one GPU: the optimizer's states, autocast's copies of the weights, DDP's
// buckets. It is computed, not measured. The savings of half precision are left out,
// because they depend on the operators.
func (f Figures) settings() float64 {
	each := perParameter(f.Optimizer) - adam
	if f.Precision == models.AMP {
		each += 2
	}
	if f.GPUs > 1 {
		each += 4
	}
	return each * float64(f.Params)
}

// notes names the settings without measurements.
func (f Figures) notes() []string {
	var out []string
	if o := f.Optimizer; o != "" && o != models.Adam && o != models.AdamW {
		out = append(out, "optimizer "+string(o)+": its states are computed, only Adam was measured")
	}
	if p := f.Precision; p != "" && p != models.FP32 {
		out = append(out, "precision "+string(p)+": only fp32 was measured, which takes more activation memory")
	}
	if f.GPUs > 1 {
		out = append(out, "more than one GPU: only one was measured; 4 bytes a parameter are added for gradient buckets")
	}
	if f.Family == models.Transformer {
		out = append(out, "only transformers on images were measured: those on text may need more")
	}
	return out
}
