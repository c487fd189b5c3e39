package onnxfile

import (
	"slices"
	"strings"

	"carma/configs/models"
)

// builder turns a network with known shapes into layers.
type builder struct {
	*network
	layers  []models.Layer
	counted map[int32]bool // weights that a layer has already
	tables  [][]int64      // shapes of the embeddings so far
	tied    bool           // the last matrix belongs to an earlier layer too
	convs   int            // number of convolutions
	bare    int            // convolutions without a bias
	folds   int            // convolutions that look as if a batch norm was folded in
	norms   int
	// fused are the makers of patterns, by the pattern's last operator.
	fused      map[int32]maker
	attentions int
}

// maker adds the layers of an operator.
type maker func(b *builder, c *call)

// makers are by operator. An operator without one becomes a layer of type other.
var makers map[string]maker

// activations are operators that are a layer type of their own.
var activations = map[string]string{
	"Relu": models.ReLU, "LeakyRelu": models.LeakyReLU, "ThresholdedRelu": models.LeakyReLU, "Elu": models.ELU, "Celu": models.ELU,
	"Selu": models.SELU, "Gelu": models.GELU, ".Gelu": models.GELU, ".FastGelu": models.GELU, ".BiasGelu": models.GELU,
	".QuickGelu": models.GELU, "Swish": models.SiLU, "Mish": models.Mish, "Softplus": models.Softplus, "Tanh": models.Tanh,
	"Sigmoid": models.Sigmoid, "HardSwish": models.HardSwish, "HardSigmoid": models.HardSigmoid, "Softmax": models.Softmax,
	"LogSoftmax": models.LogSoftmax, "Clip": models.ReLU6, "PRelu": models.PReLU, "Dropout": models.Dropout,
	"LayerNormalization": models.LayerNorm, "GroupNormalization": models.GroupNorm, ".GroupNorm": models.GroupNorm,
	"InstanceNormalization": models.InstanceNorm, "RMSNormalization": models.RMSNorm,
	"SimplifiedLayerNormalization": models.RMSNorm, ".SimplifiedLayerNormalization": models.RMSNorm,
	"BatchNormalization": models.BatchNorm, "Concat": models.Concat, "Pad": models.Pad, "Resize": models.Upsample, "Upsample": models.Upsample,
	"GlobalAveragePool": models.Mean, "ReduceMean": models.Mean, "ReduceSum": models.Mean,
	"GlobalMaxPool": models.MaxPool, "LSTM": models.Recurrent, "GRU": models.Recurrent, "RNN": models.Recurrent,
	"Tile": models.Copy, "DepthToSpace": models.Copy, "SpaceToDepth": models.Copy, "GatherElements": models.Copy,
	"GatherND": models.Copy, "CumSum": models.Copy, "Trilu": models.Copy, "ScatterElements": models.Copy, "ScatterND": models.Copy,
	"Scatter": models.Copy, "ReverseSequence": models.Copy, "Cast": models.Copy, "CastLike": models.Copy,
}

// kept tells what an operator without a layer type keeps for the backward pass: i
// its input, o its output (derivatives.yaml of PyTorch).
var kept = map[string]string{
	"Pow": "i", "Log": "i", "Erf": "i", "Abs": "i", "Sin": "i", "Cos": "i", "Softsign": "i", "Max": "i", "Min": "i", "Where": "i",
	"Sqrt": "o", "Exp": "o", "Reciprocal": "o", "ReduceMax": "io", "ReduceMin": "io", "ReduceL2": "io", "ReduceProd": "io",
	"ReduceLogSumExp": "io", "ReduceSumSquare": "i", "ReduceL1": "i", "LpNormalization": "io", "LRN": "io",
	"GlobalLpPool": "io", "LpPool": "io", ".RotaryEmbedding": "i", "RotaryEmbedding": "i",
}

func init() {
	makers = map[string]maker{
		"Conv": (*builder).convolution, "ConvTranspose": (*builder).convolution, "Gemm": (*builder).product, "MatMul": (*builder).product,
		".FusedMatMul": (*builder).product, "Einsum": (*builder).product, "MaxPool": (*builder).pool, "AveragePool": (*builder).pool,
		"Gather": (*builder).gather, "Identity": (*builder).same, "Split": (*builder).views,
		"Add": (*builder).sum, "Sub": (*builder).sum, "Sum": (*builder).sum, "Mean": (*builder).sum,
		"Mul": (*builder).scale, "Div": (*builder).scale, "Attention": (*builder).attention, ".MultiHeadAttention": (*builder).attention,
		".Attention": (*builder).projected, ".SkipLayerNormalization": (*builder).skipNorm,
		".SkipSimplifiedLayerNormalization": (*builder).skipNorm,
	}
	for _, name := range []string{"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Expand", "Slice", "Transpose"} {
		makers[name] = (*builder).views
	}
}

// build makes all layers.
func (b *builder) build() {
	for i := range b.calls {
		c := &b.calls[i]
		if c.done || !b.anyBatched(c) {
			continue // depends on weights and constants only: it belongs to the layer that uses it
		}
		c.done = true
		if m := b.fused[int32(i)]; m != nil {
			m(b, c)
			continue
		}
		if m := makers[c.key()]; m != nil && !c.told {
			m(b, c)
			continue
		}
		if (c.op == "Cast" || c.op == "CastLike") && b.arg(c, 0).kind == b.values[c.out[0]].kind {
			b.same(c)
			continue
		}
		b.simple(c)
	}
}

func (b *builder) anyBatched(c *call) bool {
	return slices.ContainsFunc(c.out, func(id int32) bool { return id >= 0 && b.values[id].batched })
}

// simple makes a layer of one operator. Its weights are the layer's parameters.
func (b *builder) simple(c *call) {
	l := models.Layer{}
	if !c.told {
		l.Type = activations[c.key()]
	}
	data, weights := []int32{}, []int32{}
	for i, id := range c.data() {
		switch {
		case id < 0:
		case len(b.values[id].weights) > 0 && !b.values[id].batched:
			if l.Type != models.BatchNorm || i < 3 {
				weights = append(weights, id)
			}
		default:
			data = append(data, id)
		}
	}
	switch l.Type {
	case models.BatchNorm, models.LayerNorm, models.GroupNorm, models.InstanceNorm, models.RMSNorm:
		b.norms++
	case models.Recurrent:
		data = c.in[:1] // initial states are small
		if r := b.values[c.in[2]].shape; len(r) == 3 {
			l.Cell = &models.Cell{Kind: strings.ToLower(c.op), Hidden: r[2], Directions: r[0]}
		}
	case models.PReLU, models.GELU:
	case models.Upsample, models.Pad, models.ReLU6, models.Dropout:
		weights = nil // these are factors and limits, not weights
	case "":
		if l.Type = models.OtherLayer; !c.told {
			data, weights = c.data(), nil
		}
	default:
		data, weights = c.data(), nil // weights are tables here, not parameters of the layer
	}
	l.Inputs = b.sources(data)
	if k := kept[c.key()]; k != "" && l.Type == models.OtherLayer {
		l.Keeps = &models.Keeps{Output: strings.Contains(k, "o")}
		if strings.Contains(k, "i") && len(l.Inputs) > 0 {
			l.Keeps.Inputs = []int{0}
		}
	}
	b.params(&l, weights...)
	b.add(c, 0, l)
	for o := 1; o < len(c.out); o++ { // states, indices, masks: only if they are used
		if id := c.out[o]; id >= 0 && len(b.values[id].uses) > 0 {
			b.add(c, o, models.Layer{Type: models.OtherLayer, Inputs: []int{len(b.layers) - 1}, Keeps: &models.Keeps{}})
		}
	}
}

// add appends the layer that makes output o of c.
func (b *builder) add(c *call, o int, l models.Layer) {
	v := &b.values[c.out[o]]
	l.Out, l.Whole = b.perSample(v)
	if l.Name == "" {
		l.Name = nameOf(c)
	}
	v.layer = len(b.layers)
	b.layers = append(b.layers, l)
}

// nameOf is the operator's name, or else that of its output.
func nameOf(c *call) string {
	name := c.name
	if name == "" && len(c.node.out) > 0 {
		name = c.node.out[0]
	}
	return strings.ToValidUTF8(strings.TrimPrefix(name, "/"), "?")
}

// sources are the layers that make these values. A weight that no layer has gets
// a layer of its own. A constant has none.
func (b *builder) sources(ids []int32) []int {
	var from []int
	for _, id := range ids {
		if id < 0 {
			continue
		}
		if at := b.layerOf(id); at != noLayer && len(from) < models.MaxList {
			from = append(from, at)
		}
	}
	return from
}

func (b *builder) layerOf(id int32) int {
	v := &b.values[id]
	if v.layer == noLayer && !v.batched && len(v.weights) > 0 {
		l := models.Layer{Name: strings.ToValidUTF8(v.name, "?"), Type: models.OtherLayer, Inputs: []int{-1}, Whole: true, Keeps: &models.Keeps{}}
		b.params(&l, id)
		l.Out, _ = b.perSample(v)
		v.layer = len(b.layers)
		b.layers = append(b.layers, l)
	}
	return v.layer
}

// params gives a layer the weights of some values. A weight that another layer
// has already is tied. A vector is not: exporters keep one of several vectors
// with equal content.
func (b *builder) params(l *models.Layer, ids ...int32) {
	var fresh, again []int64
	matrix := false
	for _, id := range ids {
		if id < 0 {
			continue
		}
		for _, w := range b.values[id].weights {
			shape := b.values[w].shape
			size := product(shape)
			if size < 1 || len(fresh)+len(again) >= models.MaxList {
				continue
			}
			vector := len(shape) == 0 || size == shape[len(shape)-1]
			if !vector && !matrix {
				matrix, b.tied = true, b.counted[w]
			}
			switch {
			case !b.counted[w]:
				fresh = append(fresh, size)
			case vector && !b.tied:
				fresh = append(fresh, size)
				b.warn("vectors that several layers share are assumed to be different ones with equal content: exporters keep only one of these")
			default:
				again = append(again, size)
			}
			b.counted[w] = true
		}
	}
	if l.Params = append(l.Params, fresh...); len(fresh) == 0 && len(again) > 0 {
		l.Params, l.Tied = again, true
	}
	if b.tied = b.tied && matrix || b.tied && len(fresh) == 0; l.Name == "" && len(ids) > 0 {
		l.Name = b.moduleOf(ids[0])
	}
}

// moduleOf is the module in a weight's name; empty: the name has none.
func (b *builder) moduleOf(id int32) string {
	if id < 0 || len(b.values[id].weights) == 0 {
		return ""
	}
	name := b.values[b.values[id].weights[0]].name
	if at := strings.LastIndexByte(name, '.'); at > 0 && !generated(name) {
		return strings.ToValidUTF8(name[:at], "?")
	}
	return ""
}
