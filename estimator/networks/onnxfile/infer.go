package onnxfile

import (
	"slices"
	"strings"

	"carma/configs/models"
)

// infer computes the shapes of an operator's outputs and where the samples are in
// them.
type infer func(n *network, c *call) error

// rules are by operator. A domain other than the standard one comes after a dot.
// init fills the table, because rules call each other.
var rules map[string]infer

func init() {
	rules = map[string]infer{
		"Conv": convolve, "ConvTranspose": convolveTransposed, "Gemm": gemm, "MatMul": matMul, ".FusedMatMul": matMul,
		"MaxPool": pool, "AveragePool": pool, "LpPool": pool,
		"GlobalAveragePool": poolAll, "GlobalMaxPool": poolAll, "GlobalLpPool": poolAll,
		"LSTM": recurrent, "GRU": recurrent, "RNN": recurrent, "Einsum": einsum,
		"Attention": attention, ".Attention": attentionMicrosoft, ".MultiHeadAttention": multiHead,
		"Concat": concat, "Split": split, "Slice": slice, "Gather": gather, "GatherElements": gatherElements, "GatherND": gatherND,
		"Transpose": transpose, "Reshape": reshape, "Flatten": flatten, "Squeeze": squeeze, "Unsqueeze": unsqueeze,
		"Expand": expand, "Tile": tile, "Pad": pad, "Resize": resize, "Upsample": resize,
		"DepthToSpace": depthToSpace, "SpaceToDepth": spaceToDepth,
		"Shape": shapeOf, "Size": sizeOfAll, "Constant": constant, "ConstantOfShape": constantOfShape, "Range": rangeOf,
		"Cast": cast, "CastLike": cast, "ArgMax": argument, "ArgMin": argument, "TopK": topK, "OneHot": oneHot,
		"EyeLike": sameAsFirst, "RandomUniformLike": sameAsFirst, "RandomNormalLike": sameAsFirst, "Bernoulli": sameAsFirst,
	}
	for _, name := range strings.Fields(`Relu LeakyRelu Elu Selu Celu Gelu Sigmoid Tanh Softplus Softsign Mish HardSwish HardSigmoid
		Swish ThresholdedRelu Clip Softmax LogSoftmax Hardmax Identity Dropout BatchNormalization LayerNormalization
		GroupNormalization InstanceNormalization RMSNormalization LpNormalization MeanVarianceNormalization LRN
		Abs Neg Exp Log Sqrt Reciprocal Erf Sign Floor Ceil Round Not IsNaN IsInf Sin Cos Tan Asin Acos Atan Sinh Cosh
		Trilu CumSum ScatterElements ScatterND Scatter ReverseSequence RotaryEmbedding
		.Gelu .FastGelu .BiasGelu .QuickGelu .SkipLayerNormalization .SimplifiedLayerNormalization SimplifiedLayerNormalization
		.SkipSimplifiedLayerNormalization .RotaryEmbedding .GroupNorm`) {
		rules[name] = sameAsFirst
	}
	for _, name := range strings.Fields(`Add Sub Mul Div Pow Max Min Sum Mean Mod And Or Xor Equal Less Greater LessOrEqual
		GreaterOrEqual Where PRelu BitwiseAnd BitwiseOr BitwiseXor`) {
		rules[name] = broadcast
	}
	for _, name := range strings.Fields(`ReduceMean ReduceSum ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceLogSum
		ReduceLogSumExp ReduceSumSquare`) {
		rules[name] = reduce
	}
}

// key is the name of an operator in the tables.
func (c *call) key() string {
	if c.domain == "" || c.domain == "ai.onnx" {
		return c.op
	}
	if c.domain == "com.microsoft" {
		return "." + c.op
	}
	return c.domain + "." + c.op
}

// shapes infers every operator's outputs.
func (n *network) shapes() error {
	for i := range n.calls {
		c := &n.calls[i]
		err := n.infer(c)
		if err != nil && !n.isTold(c) {
			return err
		}
		if err != nil {
			if c.told = !n.isView(c); c.told {
				n.warn("operator %s is not understood: kept as other, with the shape that the file tells", models.Clip(c.op))
			} else {
				n.warn("%s computes shapes from data: they are taken from the file", models.Clip(c.op))
			}
		}
		n.depend(c)
		n.fold(c)
	}
	return nil
}

func (n *network) infer(c *call) error {
	rule := rules[c.key()]
	if rule == nil {
		if n.g.functions[c.domain+"."+c.op] {
			return n.wrong(c, "is a function of the file, and those are not read; export with functions inlined (onnx.inliner)")
		}
		return n.wrong(c, "an operator that is not known, and the file does not tell its output's shape; export with shape inference (onnx.shape_inference)")
	}
	for _, id := range c.in {
		if id >= 0 && !n.values[id].known {
			return n.wrong(c, "the shape of %s is not known; export with shape inference (onnx.shape_inference)", short(n.values[id].name))
		}
	}
	if len(c.out) == 0 {
		return n.wrong(c, "it has no output")
	}
	return rule(n, c)
}

// isView reports whether an operator shares the memory of its first input,
// whatever its shape.
func (n *network) isView(c *call) bool {
	switch c.key() {
	case "Reshape", "Expand", "Slice", "Squeeze", "Unsqueeze":
		x := n.arg(c, 0)
		return x != nil && x.known
	}
	return false
}

// isTold takes the shapes of the outputs from the file. It reports whether the
// file has any.
func (n *network) isTold(c *call) bool {
	any := false
	for _, id := range c.out {
		if id < 0 || n.values[id].known {
			continue
		}
		v := &n.values[id]
		shape, ok := n.resolve(v.info)
		if !ok || shapeFault(shape) != "" {
			if len(v.uses) > 0 || !any {
				return false
			}
			continue
		}
		v.known, v.shape, v.kind, any = true, shape, v.info.kind, true
		if len(shape) > 0 && shape[0] == n.batch {
			v.axis = 0
		}
	}
	return any
}

// maxSources bounds how many weights an expression may depend on. maxCompared
// bounds the comparisons that find this out, for the whole network.
const (
	maxSources  = 1024
	maxCompared = 1 << 24
)

// union adds the weights of one input to those of the others.
func (n *network) union(weights, more []int32) []int32 {
	switch {
	case len(weights) == 0:
		return more
	case len(more) == 0 || &weights[0] == &more[0]:
		return weights
	}
	for _, w := range more {
		if n.compared += len(weights); len(weights) >= maxSources || n.compared > maxCompared {
			n.warn("a tensor is computed of more than %d weights: not all are counted", maxSources)
			break
		}
		if !slices.Contains(weights, w) {
			weights = append(slices.Clip(weights), w)
		}
	}
	return weights
}

// depend notes the weights that the outputs depend on, and whether they depend on
// the model's inputs.
func (n *network) depend(c *call) {
	batched := false
	var weights []int32
	for _, id := range c.data() {
		if id < 0 {
			continue
		}
		v := &n.values[id]
		batched = batched || v.batched
		weights = n.union(weights, v.weights)
	}
	for o, id := range c.out {
		if id < 0 {
			continue
		}
		v := &n.values[id]
		if v.batched = batched; !batched {
			v.axis = -1
			if real(v.kind) && (o == 0 || c.op == "Split") && c.op != "Constant" {
				v.weights = weights
			}
		}
		n.duplicate(c, v)
		if c.op == "ConstantOfShape" && n.filled(v) {
			v.weights = []int32{id}
		}
	}
}

// duplicate: exporters store one of several equal tensors. The others come back
// by Identity under their own names, and count as weights of their own.
func (n *network) duplicate(c *call, v *value) {
	if c.op == "Identity" && len(v.weights) == 1 && v.weights[0] == c.in[0] && v.name != "" {
		v.weights = []int32{n.ids[v.name]}
	}
}

// data are the inputs whose content is used for the output.
func (c *call) data() []int32 {
	switch {
	case c.shapeOnly():
		return nil
	case c.op == "CastLike" || c.op == "Expand" || c.op == "Reshape":
		return c.in[:min(1, len(c.in))]
	}
	return c.in
}

// shapeOnly reports whether the output depends only on the input's shape.
func (c *call) shapeOnly() bool {
	switch c.op {
	case "Shape", "Size", "ConstantOfShape", "EyeLike", "RandomUniformLike", "RandomNormalLike":
		return true
	}
	return false
}
