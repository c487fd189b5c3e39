package zoo

import (
	"slices"

	"carma/configs/models"
)

// tally sums the bytes that the layers keep for the backward pass, each storage
// once.
type tally struct {
	cfg     *models.Config
	storage []int  // for each layer: the layer that made its storage, or an input (negative)
	grad    []bool // a gradient flows through the layer's output
	kept    map[int]bool
	bytes   int64 // kept outside of any layer's output
}

// keptBytes returns the bytes kept per sample, by the rules in the estimator's
// documentation. It leaves out bytes that do not depend on the batch.
func keptBytes(cfg *models.Config) int64 {
	t := tally{cfg: cfg, kept: map[int]bool{}}
	for i, l := range cfg.Layers {
		t.add(i, l)
	}
	sum := t.bytes
	for s := range t.kept {
		sum += t.size(s)
	}
	return sum
}

func (t *tally) add(i int, l models.Layer) {
	own := i
	if l.Type == models.View || l.InPlace {
		own = t.of(l.Inputs[0])
	}
	t.storage = append(t.storage, own)
	grad := len(l.Params) > 0 && !l.Frozen || l.Tied && !l.Frozen
	for _, in := range l.Inputs {
		grad = grad || t.hasGrad(in)
	}
	t.grad = append(t.grad, grad)
	if grad {
		t.keep(i, l)
	}
}

func (t *tally) of(in int) int {
	if in < 0 {
		return in
	}
	return t.storage[in]
}

func (t *tally) hasGrad(in int) bool { return in >= 0 && t.grad[in] }

func (t *tally) size(storage int) int64 {
	if storage < 0 {
		in := t.cfg.Inputs[-1-storage]
		return count(in.Shape) * int64(max(in.Bytes, 4))
	}
	l := t.cfg.Layers[storage]
	if l.Whole {
		return 0
	}
	return 4 * count(l.Out)
}

func count(shape []int64) int64 {
	n := int64(1)
	for _, d := range shape {
		n *= d
	}
	return n
}

func (t *tally) keep(i int, l models.Layer) {
	if l.Keeps != nil {
		for _, p := range slices.Concat(l.Keeps.Inputs, l.Keeps.Wide) {
			t.kept[t.of(l.Inputs[p])] = true
		}
		if l.Keeps.Output {
			t.kept[t.of(i)] = true
		}
		t.bytes += l.Keeps.Bytes
		return
	}
	inputs := func() {
		for _, in := range l.Inputs {
			t.kept[t.of(in)] = true
		}
	}
	n := count(l.Out)
	switch l.Type {
	case models.Convolution, models.ConvTranspose, models.Linear:
		if !l.Frozen {
			inputs()
		}
	case models.BatchNorm:
		inputs()
	case models.LayerNorm:
		inputs()
		t.bytes += 8 * n / l.Out[len(l.Out)-1]
	case models.Embedding, models.EmbeddingBag:
		inputs()
	case models.ReLU, models.Tanh, models.Sigmoid, models.Softmax:
		t.kept[t.of(i)] = true
	case models.ReLU6, models.GELU, models.SiLU, models.HardSwish, models.HardSigmoid:
		if l.InPlace { // a copy of the input
			t.bytes += 4 * n
		} else {
			inputs()
		}
	case models.Dropout:
		t.bytes += n
	case models.MaxPool:
		inputs()
		t.bytes += 8 * n
	case models.AvgPool, models.Pow:
		inputs()
	case models.Mul, models.MatMul:
		a, b := l.Inputs[0], l.Inputs[1]
		if t.hasGrad(a) {
			t.kept[t.of(b)] = true
		}
		if t.hasGrad(b) {
			t.kept[t.of(a)] = true
		}
	case models.Attention:
		inputs()
		t.kept[t.of(i)] = true
		t.bytes += 4 * l.Heads * l.Out[0]
	case models.CrossEntropy:
		t.bytes += 4*count(t.cfg.Layers[l.Inputs[0]].Out) + 8*count(t.cfg.Inputs[-1-l.Inputs[1]].Shape)
	case models.Loss:
		inputs()
	}
}

func params(cfg *models.Config) int64 {
	var sum int64
	for _, l := range cfg.Layers {
		if l.Tied {
			continue
		}
		for _, p := range l.Params {
			sum += p
		}
	}
	return sum
}

// consistent returns a fault of a configuration, or "" if there is none.
func consistent(cfg *models.Config) string {
	for i, l := range cfg.Layers {
		switch {
		case !slices.Contains(models.Types(), l.Type):
			return l.Name + " has the unknown type " + l.Type
		case len(l.Inputs) == 0:
			return l.Name + " has no inputs"
		case len(l.Out) == 0 || slices.Min(l.Out) < 1:
			return l.Name + " has an empty output"
		case len(l.Params) > 0 && slices.Min(l.Params) < 1:
			return l.Name + " has empty parameters"
		}
		for _, in := range l.Inputs {
			if in >= i || -in > len(cfg.Inputs) {
				return l.Name + " takes what is not there yet"
			}
		}
		in := l.Inputs[0]
		if in >= 0 && (l.Type == models.View && count(l.Out) > count(cfg.Layers[in].Out) ||
			l.InPlace && !slices.Equal(l.Out, cfg.Layers[in].Out)) {
			return l.Name + " does not fit into the storage of its input"
		}
	}
	return ""
}
