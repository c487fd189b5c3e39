package step

import "carma/configs/models"

// keeps lists the tensors that a layer keeps until its gradient is computed.
type keeps struct {
	input  bool // all its inputs
	output bool
	clone  bool // a copy of its input, which it overwrites
	// perOut is the number of additional bytes per element of the output.
	perOut int64
}

// rules maps a layer's type to the tensors that it keeps. A type that is not listed keeps
// nothing.
var rules = map[string]keeps{
	models.Convolution:   {input: true},
	models.ConvTranspose: {input: true},
	models.Linear:        {input: true},
	models.MatMul:        {input: true},
	models.Mul:           {input: true},
	models.Attention:     {input: true, output: true},
	models.Recurrent:     {input: true, output: true, perOut: 8 * 4},

	models.BatchNorm:    {input: true},
	models.LayerNorm:    {input: true},
	models.RMSNorm:      {input: true},
	models.GroupNorm:    {input: true},
	models.InstanceNorm: {input: true},

	models.ReLU:       {output: true},
	models.Tanh:       {output: true},
	models.Sigmoid:    {output: true},
	models.Softmax:    {output: true},
	models.LogSoftmax: {output: true},

	models.ReLU6:       {input: true},
	models.LeakyReLU:   {input: true},
	models.PReLU:       {input: true},
	models.ELU:         {input: true},
	models.SELU:        {input: true},
	models.GELU:        {input: true},
	models.SiLU:        {input: true},
	models.Mish:        {input: true},
	models.Softplus:    {input: true},
	models.HardSwish:   {input: true},
	models.HardSigmoid: {input: true},

	models.Dropout: {perOut: 1},              // a mask of booleans
	models.MaxPool: {input: true, perOut: 8}, // indices
	models.AvgPool: {input: true},
	models.Pow:     {input: true},
}

// resultRules lists the types of layers that can compute their gradient from their result.
// In place, layers of other types keep a copy of the overwritten input.
var resultRules = map[string]bool{
	models.ReLU: true, models.LeakyReLU: true, models.ELU: true, models.SELU: true,
	models.Tanh: true, models.Sigmoid: true, models.Softmax: true,
}

// keepsOf returns the tensors that layer l keeps because of its type.
func keepsOf(l *models.Layer) keeps {
	k := rules[l.Type]
	if l.InPlace && k.input && elementwise(l.Type) {
		k.input = false
		k.output, k.clone = resultRules[l.Type], !resultRules[l.Type]
	}
	return k
}

func elementwise(t string) bool {
	switch t {
	case models.ReLU6, models.LeakyReLU, models.PReLU, models.ELU, models.SELU, models.GELU, models.SiLU,
		models.Mish, models.Softplus, models.HardSwish, models.HardSigmoid:
		return true
	}
	return false
}

// needsInput reports whether the layer must keep its inputs. A linear layer needs them
// only for the gradient of its weights, so it keeps none if the weights are frozen. A
// convolution has one formula for all its gradients (derivatives.yaml), and keeps its
// inputs. An 8-bit product of bitsandbytes stores its input elsewhere (quantized.go).
func needsInput(l *models.Layer) bool {
	return l.Type != models.Linear || !l.Frozen && len(l.Params) > 0
}

// held returns the values that the program still references while layer i runs.
func (p *planner) held(i int, l *models.Layer) (values []int32, err error) {
	for _, at := range l.Holds {
		v, ok := p.input(i, at)
		if !ok || at < 0 {
			return nil, errAt(i, l, "holds the output of layer %d, which does not come before it", at+1)
		}
		values = append(values, v)
	}
	return values, nil
}

// giveBack frees the values that the program held during the last layer.
func (r *run) giveBack(holds []int32) {
	for _, v := range holds {
		s := r.values[v].storage
		r.alive[s] = false
		r.drop(s)
	}
}
