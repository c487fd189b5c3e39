package step

import "carma/configs/models"

// keeps is what a layer holds until its gradient is computed.
type keeps struct {
	input  bool // its inputs, all of them
	output bool
	clone  bool // a copy of its input, where it writes in place
	// perOut are further bytes for each element of the output.
	perOut int64
}

// rules are what layers keep by type. Layers that are not listed keep nothing.
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
}

// resultRules replace the rules of layers that write in place: these can do
// with the result, the others keep a copy of what they overwrite.
var resultRules = map[string]bool{
	models.ReLU: true, models.LeakyReLU: true, models.ELU: true, models.SELU: true,
	models.Tanh: true, models.Sigmoid: true, models.Softmax: true,
}

// keepsOf is what layer l keeps by its type.
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

// needsInput: the inputs are kept for the gradient of the weights only, so a
// layer with frozen weights keeps none.
func needsInput(l *models.Layer) bool {
	switch l.Type {
	case models.Convolution, models.ConvTranspose, models.Linear:
		return !l.Frozen && len(l.Params) > 0
	}
	return true
}
