package transformer

import (
	"carma/configs/models"
	"carma/estimator/networks/graph"
)

// Block is one layer of a Transformer: attention and a feed-forward part, each added to
// its input. Its fields contain the differences between kinds of models.
type Block struct {
	// Width is the width of a token, Inner the width of the feed-forward part. Heads have
	// Key numbers each; Groups is the number of heads of keys and values.
	Width, Inner, Heads, Groups, Key int64

	LayerNorm  bool   // otherwise RMS norms
	NarrowNorm bool   // RMS norms multiply the 16-bit tokens by a 32-bit number (T5)
	OffsetNorm bool   // RMS norms multiply by 1 + weight in 32 bits (Gemma)
	Activation string // type of the activation layer: silu, gelu, relu, or new_gelu and quick_gelu in single operations
	Gated      bool   // one projection's activation is multiplied by another projection
	Rotary     bool   // queries and keys have rotary positions
	// Prefix is the number of first tokens without rotary positions. If it is not 0, the
	// factors have the image's precision (DINOv3).
	Prefix  int64
	BiasQKV bool
	// Queries, keys or values without a bias despite BiasQKV.
	PlainQuery, PlainKey, PlainValue bool
	BiasOut                          bool // bias of the attention's last projection
	BiasInner                        bool // bias of the feed-forward part
	NormHeads                        bool // queries and keys are normed per head
	NormWidth                        bool // queries and keys are normed as a whole
	Sandwich                         bool // norms before and after each part (Gemma 2)
	PostNorm                         bool // norms only after each part (OLMo 2)
	SumNorm                          bool // norms only after each sum (BERT)
	FirstBare                        bool // the first block has no norm before its attention (ModernBERT)
	PlainNorm                        bool // layer norms have no bias
	Scaled                           bool // each part is multiplied by learned numbers before the addition (DINOv2)
	SkipPath                         bool // each part is randomly dropped before the addition (BEiT)
	Parallel                         bool // attention and feed-forward part in parallel
	OneNorm                          bool // with Parallel: both parts use the same norm
	JointQKV                         bool // one joint projection for queries, keys and values
	JointGate                        bool // one joint projection for both halves of a gated part
	Sinks                            bool // each head has a learned score that no token takes (gpt-oss)
	Unfused                          bool // the attention's scores are kept
	// CopiesHeads is set if queries, keys and values are copied head by head (OPT). Single
	// is set if the attention uses single operations on copies of its operands (GPT-Neo).
	CopiesHeads, Single bool
	// Window is the distance of the attention mask in tokens, except in every Global-th
	// block, or 0 for all tokens (ModernBERT).
	Window, Global int64
	OrderedQKV     bool // queries are scaled, and queries, keys and values copied to be contiguous per head (Whisper)
	OrderedOut     bool // heads are contiguous in memory, so the attention's output is copied
	Dropout        bool // dropout after embeddings and both parts
	InnerDrop      bool // dropout before the last projection of the feed-forward part

	Distances   *Distances // nil if scores do not depend on distances
	PatchBias   *PatchBias // nil if pairs of patches have no bias
	Experts     *Experts   // nil for one feed-forward part for all tokens
	Latent      *Latent    // nil if queries, keys and values are projected from the tokens
	Projections Projections
}

// Projections contains the names of the projections, for adapters.
type Projections struct{ Q, K, V, QKV, Out, Gate, Up, GateUp, Down string }

// llamaNames contains the names in most decoders.
var llamaNames = Projections{
	Q: "q_proj", K: "k_proj", V: "v_proj", QKV: "qkv_proj", Out: "o_proj",
	Gate: "gate_proj", Up: "up_proj", GateUp: "gate_up_proj", Down: "down_proj",
}

func (d *Block) drop(g *graph.Graph, name string, x int) int { return g.DropIf(d.Dropout, name, x) }

// Norm adds a norm of the block's kind.
func (d *Block) Norm(g *graph.Graph, name string, x int) int {
	switch {
	case d.NarrowNorm:
		return narrowNorm(g, name, x)
	case d.LayerNorm:
		i := g.LayerNorm(name, x)
		if d.PlainNorm {
			g.Layers[i].Params = g.Layers[i].Params[:1]
		}
		return i
	case d.OffsetNorm:
		return offsetNorm(g, name, x)
	}
	return rmsNorm(g, name, x)
}

// beside contains the inputs of a decoder's blocks other than the tokens; 0 means none.
type beside struct {
	encoded int // the encoder's last tokens
	bias    int // added to the attention's scores
}

// block adds layer i, from 0.
func (d *Block) block(g *graph.Graph, name string, in int, i int64) int {
	return d.blockBeside(g, name, in, i, beside{})
}

func (d *Block) blockBeside(g *graph.Graph, name string, in int, i int64, with beside) int {
	defer g.StartBlock(name)()
	if d.Parallel {
		x := d.Norm(g, "input_layernorm", in)
		y := x
		if !d.OneNorm {
			y = d.Norm(g, "post_attention_layernorm", in)
		}
		sum := g.Plus("add1", d.drop(g, "attn_dropout", d.attention(g, "self_attn", x, x, 0, i)), d.drop(g, "mlp_dropout", d.FeedForward(g, y, i)))
		return g.Plus("add2", sum, in)
	}
	before, after := !d.PostNorm && !d.SumNorm, d.Sandwich || d.PostNorm
	x := in
	if before && !(d.FirstBare && i == 0) {
		x = d.Norm(g, "input_layernorm", x)
	}
	x = d.attention(g, "self_attn", x, x, with.bias, i)
	if after {
		x = d.Norm(g, "post_attention_layernorm", x)
	}
	in = d.sum(g, "attn", in, x)
	if with.encoded > 0 {
		x = in
		if before {
			x = d.Norm(g, "encoder_attn_layernorm", x)
		}
		in = d.sum(g, "encoder_attn", in, d.attention(g, "encoder_attn", x, with.encoded, 0, i))
	}
	x = in
	if before {
		x = d.Norm(g, "pre_feedforward_layernorm", x)
	}
	x = d.FeedForward(g, x, i)
	if after {
		x = d.Norm(g, "post_feedforward_layernorm", x)
	}
	return d.sum(g, "mlp", in, x)
}

// sum adds a part's output to its input.
func (d *Block) sum(g *graph.Graph, part string, in, x int) int {
	if d.Scaled {
		x = g.Weighted(part+"_scale", x, d.Width)
	}
	x = d.drop(g, part+"_dropout", x)
	if d.SkipPath {
		x = g.Skip(part+"_path", g.Scale(part+"_path.div", x))
	}
	x = g.Plus(part+"_add", in, x)
	if d.SumNorm {
		x = d.Norm(g, part+"_layernorm", x)
	}
	return x
}

// attention adds the attention of a block with its projections. Keys and values come from
// source. bias is added to the scores, unless 0.
func (d *Block) attention(g *graph.Graph, name string, x, source, bias int, i int64) int {
	defer g.Module(name)()
	if d.Latent != nil {
		return d.latentAttention(g, x)
	}
	if d.Distances != nil {
		return g.Linear(d.Projections.Out, d.distant(g, x, bias), d.Width, d.BiasOut)
	}
	q, k, v := d.queries(g, x, source)
	if d.NormHeads {
		q, k = headNorm(g, "q_norm", q, d.Key), headNorm(g, "k_norm", k, d.Key)
	}
	if d.NormWidth {
		q, k = rmsNorm(g, "q_norm", q), rmsNorm(g, "k_norm", k)
	}
	switch {
	case d.Rotary && d.Prefix > 0:
		q, k = d.turnPatches(g, "q", q), d.turnPatches(g, "k", k)
	case d.Rotary:
		q, k = rotate(g, "q", q), rotate(g, "k", k)
	}
	if d.OrderedQKV {
		q = g.Scale("q.scale", q)
	}
	if d.CopiesHeads || d.OrderedQKV {
		q, k, v = g.CopyOf("q.contiguous", q, g.Shape(q)...), g.CopyOf("k.contiguous", k, g.Shape(k)...), g.CopyOf("v.contiguous", v, g.Shape(v)...)
	}
	cache(g, k, v)
	if d.Single {
		return g.Linear(d.Projections.Out, singleAttention(g, q, k, v, d.Heads), d.Width, d.BiasOut)
	}
	if d.Sinks {
		g.Table("sinks", d.Heads)
	}
	var masks []int
	if n := g.Shape(q)[0]; d.Window > 0 && n >= d.Window && i%d.Global != 0 {
		// The kernel takes a numeric mask. Each block and sample makes one.
		masks = append(masks, g.Op(models.Copy, "mask", []int64{n, n}, graph.Data))
	}
	if d.PatchBias != nil {
		bias = d.PatchBias.scores(g, d.Heads)
	}
	if bias > 0 {
		// The kernel computes a gradient of the bias for each sample.
		masks = append(masks, g.PerSample(g.View("bias", g.CopyOf("bias.contiguous", bias, g.Shape(bias)...), g.Shape(bias)...)))
	}
	a := g.Attend("sdpa", q, k, v, d.Heads)
	g.Layers[a].Inputs = append(g.Layers[a].Inputs, masks...)
	g.Layers[a].Unfused = d.Unfused
	if d.OrderedOut {
		a = g.CopyOf("ordered", a, g.Shape(a)...)
	}
	return g.Linear(d.Projections.Out, a, d.Width, d.BiasOut)
}

func (d *Block) queries(g *graph.Graph, x, source int) (q, k, v int) {
	wide, narrow := d.Heads*d.Key, d.Groups*d.Key
	if !d.JointQKV {
		return g.Adapted(d.Projections.Q, x, wide, d.BiasQKV && !d.PlainQuery), g.Linear(d.Projections.K, source, narrow, d.BiasQKV && !d.PlainKey), g.Adapted(d.Projections.V, source, narrow, d.BiasQKV && !d.PlainValue)
	}
	all := g.Adapted(d.Projections.QKV, x, wide+2*narrow, d.BiasQKV)
	tokens := g.Shape(x)[0]
	return g.View("query", all, tokens, wide), g.View("key", all, tokens, narrow), g.View("value", all, tokens, narrow)
}

// FeedForward adds the second part of block i.
func (d *Block) FeedForward(g *graph.Graph, x int, i int64) int {
	defer g.Module("mlp")()
	if d.Experts != nil && i >= d.Experts.First {
		return d.experts(g, x)
	}
	return d.dense(g, x, d.Inner)
}

func (d *Block) dense(g *graph.Graph, x int, inner int64) int {
	switch {
	case d.Gated && d.JointGate:
		both := g.Linear(d.Projections.GateUp, x, 2*inner, d.BiasInner)
		tokens := g.Shape(x)[0]
		gate, up := g.View("gate", both, tokens, inner), g.View("up", both, tokens, inner)
		x = g.Times("mul", up, d.activation(g, gate))
	case d.Gated:
		gate := d.activation(g, g.Linear(d.Projections.Gate, x, inner, d.BiasInner))
		x = g.Times("mul", gate, g.Linear(d.Projections.Up, x, inner, d.BiasInner))
	default:
		x = d.activation(g, g.Linear(d.Projections.Up, x, inner, d.BiasInner))
	}
	return g.Linear(d.Projections.Down, g.DropIf(d.InnerDrop, "inner_dropout", x), d.Width, d.BiasInner)
}

func (d *Block) activation(g *graph.Graph, x int) int {
	switch d.Activation {
	case "new_gelu":
		return newGELU(g, "act_fn", x)
	case "quick_gelu":
		return g.Times("act_fn.mul", x, g.Unary(models.Sigmoid, "act_fn.sigmoid", g.Scale("act_fn.scale", x)))
	}
	return g.Unary(d.Activation, "act_fn", x)
}

// singleAttention adds attention in single operations. The products take copies of query,
// key and value, contiguous per head, and keep them.
func singleAttention(g *graph.Graph, q, k, v int, heads int64) int {
	n, m := g.Shape(q)[0], g.Shape(k)[0]
	wide, narrow := g.Shape(q)[1], g.Shape(v)[1]
	q, k = g.CopyOf("q.contiguous", q, n, wide), g.CopyOf("k.contiguous", k, m, wide)
	a := g.Op(models.MatMul, "scores", []int64{heads, n, m}, q, k)
	a = g.CopyOf("mask.add", g.CopyOf("where", a, heads, n, m), heads, n, m)
	a = g.Unary(models.Softmax, "softmax", a)
	a = g.Op(models.MatMul, "weighted", []int64{heads, n, narrow / heads}, a, g.CopyOf("v.contiguous", v, m, narrow))
	return g.CopyOf("transpose", a, n, narrow)
}

// cache marks the outputs that a language model returns for its cache. For views it marks
// the tensors that they share.
func cache(g *graph.Graph, layers ...int) {
	for _, i := range layers {
		if i >= 0 {
			g.Layers[i].Cached = true
		}
	}
}
