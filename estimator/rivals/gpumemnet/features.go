package gpumemnet

import (
	"math"
	"slices"

	"carma/configs/models"
)

// features is the number of features. The features and their order are the same as in
// estimator/training/features.py. A test compares both with a golden file.
const features = 16

var (
	convolutions = []string{models.Convolution, models.ConvTranspose}
	norms        = []string{models.BatchNorm, models.LayerNorm, models.RMSNorm, models.GroupNorm, models.InstanceNorm}
	keepOutput   = []string{models.ReLU, models.ReLU6, models.Tanh, models.Sigmoid}
	keepInput    = []string{
		models.ELU, models.GELU, models.HardSigmoid, models.HardSwish, models.LeakyReLU, models.Mish, models.PReLU,
		models.SELU, models.SiLU, models.Softplus, models.AvgPool, models.MaxPool, models.Mean,
	}
	weights = append(slices.Clone(convolutions), models.Linear)
	// listed contains the types of layers that count. Softmax, losses, sums and views do not
	// count, because only some summaries of a network list them.
	listed = slices.Concat(weights, norms, keepOutput, keepInput, []string{models.Dropout})

	convActivations = []string{
		models.ELU, models.GELU, models.LeakyReLU, models.Mish, models.PReLU, models.ReLU, models.SELU, models.SiLU,
		models.Softplus, models.Tanh,
	}
	mlpActivations = slices.Insert(slices.Clone(convActivations), 2, identity)
)

// identity is the activation of an MLP without activations.
const identity = "identity"

// batch returns the number of samples on one GPU.
func batch(c models.Config) float64 {
	gpus := max(c.Train.GPUs, 1)
	return float64((c.Train.Batch + gpus - 1) / gpus)
}

func product(shape []int64) float64 {
	n := 1.0
	for _, d := range shape {
		n *= float64(d)
	}
	return n
}

func params(l models.Layer) float64 {
	if l.Tied {
		return 0
	}
	n := 0.0
	for _, p := range l.Params {
		n += float64(p)
	}
	return n
}

// summary returns the features of a valid configuration, in which layers refer to earlier
// layers or to an input.
func summary(c models.Config) []float32 {
	b := batch(c)
	var depth, total, activations, convs, linears, normCount, dropouts, pair, largest, heaviest, masks float64
	out := make([]float64, len(c.Layers))
	storage := make([]int, len(c.Layers))
	kept := map[int]float64{} // sums of integers, so the order does not change them
	for i, l := range c.Layers {
		out[i] = product(l.Out)
		if !l.Whole {
			out[i] *= b
		}
		sources := l.Inputs
		if len(sources) == 0 {
			sources = []int{i - 1}
		}
		roots, sizes, in := make([]int, len(sources)), make([]float64, len(sources)), 0.0
		for k, j := range sources {
			if j >= 0 {
				roots[k], sizes[k] = storage[j], out[j]
			} else {
				roots[k], sizes[k] = j, product(c.Inputs[-1-j].Shape)*b
			}
			in += sizes[k]
		}
		storage[i] = i
		if l.Type == models.View || l.InPlace {
			storage[i] = roots[0]
		}
		heavy := slices.Contains(weights, l.Type)
		switch {
		case heavy || slices.Contains(norms, l.Type) || slices.Contains(keepInput, l.Type):
			for k, root := range roots {
				kept[root] = sizes[k]
			}
		case slices.Contains(keepOutput, l.Type):
			kept[storage[i]] = out[i]
		case l.Type == models.Dropout:
			masks += out[i]
			dropouts++
		}
		p := params(l)
		total += p
		heaviest = max(heaviest, p)
		if !slices.Contains(listed, l.Type) {
			continue
		}
		depth++
		activations += product(l.Out)
		largest = max(largest, out[i])
		if heavy {
			pair = max(pair, in+out[i])
		}
		switch {
		case l.Type == models.Linear:
			linears++
		case heavy:
			convs++
		case slices.Contains(norms, l.Type):
			normCount++
		}
	}
	for _, elements := range kept {
		masks += 4 * elements
	}
	sin, cos := activation(c)
	all := []float64{
		depth, b, total, activations, activations * b, convs, linears, normCount, dropouts,
		masks, pair, largest, heaviest, 16*total + masks, sin, cos,
	}
	result := make([]float32, len(all))
	for i, v := range all {
		result[i] = float32(v)
	}
	return result
}

// activation returns the code of the most frequent activation. Among equally frequent
// activations, the first by name counts.
func activation(c models.Config) (sin, cos float64) {
	names, most := convActivations, models.ReLU
	if c.Family == models.MLP {
		names, most = mlpActivations, identity
	}
	counts := map[string]int{}
	for _, l := range c.Layers {
		if l.Type == models.ReLU6 {
			l.Type = models.ReLU
		}
		counts[l.Type]++
	}
	for _, n := range names {
		if counts[n] > counts[most] {
			most = n
		}
	}
	// In a tie with the default, the first name wins, as in the training.
	for _, n := range names {
		if counts[n] == counts[most] && counts[n] > 0 {
			most = n
			break
		}
	}
	angle := float64(slices.Index(names, most)) * math.Pi / float64(len(names))
	return math.Sin(angle), math.Cos(angle)
}
