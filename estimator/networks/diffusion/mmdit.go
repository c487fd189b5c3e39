package diffusion

import (
	"fmt"
	"slices"

	"carma/configs/models"
	"carma/estimator/networks/graph"
)

// MMDiT is an SD3Transformer2DModel of the diffusers library. Each block processes the
// tokens of the image and the tokens of the prompt.
type MMDiT struct {
	Depth, Heads, Head int64
	Text, Pooled       int64 // widths of the prompt and of its sum
	Tokens             int64 // number of tokens of the prompt
	Positions          int64 // side of the table of positions, in patches
	Channels           int64 // number of channels of a latent
	Norm               bool  // queries and keys are normed
	Dual               int64 // number of first blocks with a second attention, among the image's tokens
}

func (m *MMDiT) build(g *graph.Graph, latents, text, pooled int) int {
	width := m.Heads * m.Head
	x := g.Conv("pos_embed.proj", latents, graph.Window{Out: width, Kernel: 2, Stride: 2, Bias: true})
	s := g.Shape(x)
	n := s[1] * s[2]
	if s[1] > m.Positions {
		g.Fail("the image is too large: %d patches a side, and %d positions", s[1], m.Positions)
	}
	x = g.Plus("pos_embed", g.View("tokens", x, n, width), buffer(g, "pos_embed.table", m.Positions*m.Positions*width, n, width))
	x = g.CopyOf("contiguous", x, n, width)
	time := timeAndText(g, pooled, width, m.Pooled, false)
	context := g.Linear("context_embedder", text, width, true)
	for i := range m.Depth {
		x, context = m.block(g, fmt.Sprintf("transformer_blocks.%d", i), x, context, time, i)
	}
	x = modulated(g, "norm_out", x, time, 2)
	return g.Linear("proj_out", x, 4*m.Channels, true)
}

// block adds a JointTransformerBlock. The last block leaves the prompt unchanged.
func (m *MMDiT) block(g *graph.Graph, name string, x, context, time int, i int64) (int, int) {
	defer g.StartBlock(name)()
	last := i == m.Depth-1
	parts, rest := int64(6), int64(6)
	if i < m.Dual {
		parts = 9
	}
	if last {
		rest = 2
	}
	y, c := modulated(g, "norm1", x, time, parts), modulated(g, "norm1_context", context, time, rest)
	joint := joint{heads: m.Heads, norm: m.Norm}
	a, b := joint.attention(g, "attn", y, c, !last)
	x = g.Plus("add1", x, gated(g, "gate1", a, time))
	if i < m.Dual {
		second, _ := joint.attention(g, "attn2", modulation(g, "norm1.second", y, time), -1, true)
		x = g.Plus("add_second", x, gated(g, "gate_second", second, time))
	}
	x = feed(g, "ff", x, time)
	if last {
		return x, context
	}
	context = g.Plus("add_context", context, gated(g, "gate_context", b, time))
	return x, feed(g, "ff_context", context, time)
}

// joint is attention over the tokens of the image and of the prompt together.
type joint struct {
	heads  int64
	norm   bool
	rotary bool
}

// attention adds the attention of the tokens x and the prompt c. If c is negative, there
// is no prompt. out is set if the prompt's tokens, or without a prompt the image's
// tokens, get an output projection.
func (j joint) attention(g *graph.Graph, name string, x, c int, out bool) (int, int) {
	defer g.Module(name)()
	width, n := g.Last(x), g.Shape(x)[0]
	var all [3]int
	for k, part := range []string{"q", "k", "v"} {
		y := g.Linear("to_"+part, x, width, true)
		if j.norm && part != "v" {
			y = fusedNorm(g, "norm_"+part, y, width/j.heads)
		}
		if c >= 0 {
			z := g.Linear("add_"+part+"_proj", c, width, true)
			if j.norm && part != "v" {
				z = fusedNorm(g, "norm_added_"+part, z, width/j.heads)
			}
			y = g.Concat("cat_"+part, y, z)
		}
		if j.rotary && part != "v" {
			y = turn(g, part, y)
		}
		all[k] = y
	}
	a := g.Attend("sdpa", all[0], all[1], all[2], j.heads)
	if c < 0 {
		if out {
			a = g.Linear("to_out", a, width, true)
		}
		return a, -1
	}
	side := g.View("image", a, n, width)
	text := g.View("text", a, g.Shape(c)[0], width)
	side = g.Linear("to_out", g.CopyOf("image.copy", side, n, width), width, true)
	if out {
		text = g.Linear("to_add_out", g.CopyOf("text.copy", text, g.Shape(c)[0], width), width, true)
	}
	return side, text
}

// timeAndText adds the embeddings of the time, of the guidance and of the pooled prompt.
func timeAndText(g *graph.Graph, pooled int, width, sum int64, guidance bool) int {
	defer g.Module("time_text_embed")()
	embed := func(name string, in int) int {
		defer g.Module(name)()
		return g.Linear("linear_2", g.Unary(models.SiLU, "act", g.Linear("linear_1", in, width, true)), width, true)
	}
	x := embed("timestep_embedder", g.NewInput(0, 256))
	if guidance {
		x = g.Plus("add_guidance", x, embed("guidance_embedder", g.NewInput(0, 256)))
	}
	return g.Plus("add", x, embed("text_embedder", pooled))
}

// modulated adds a layer norm whose scale and shift are computed from the time. parts is
// the number of vectors that its linear layer computes.
func modulated(g *graph.Graph, name string, x, time int, parts int64) int {
	defer g.Module(name)()
	vectors := g.Linear("linear", g.Unary(models.SiLU, "silu", time), parts*g.Last(x), true)
	n := g.Add(models.Layer{Name: "norm", Type: models.LayerNorm, Inputs: []int{x}, Out: slices.Clone(g.Shape(x))})
	return modulation(g, "modulate", n, vectors)
}

// modulation multiplies tokens by a vector and adds a vector. The gradient of the factor
// needs the tokens.
func modulation(g *graph.Graph, name string, x, time int) int {
	return g.Plus(name+".shift", gated(g, name+".scale", x, time), time)
}

// gated multiplies tokens by a vector that comes from the time.
func gated(g *graph.Graph, name string, x, time int) int {
	i := g.Op(models.Mul, name, g.Shape(x), x, time)
	keeps := models.Keeps{Inputs: []int{0, 1}}
	if g.Rank > 0 { // the vector is not trained
		keeps.Inputs = []int{1}
	}
	return g.Keeping(i, keeps)
}

// feed adds the feed-forward part of a block with its norm and gate.
func feed(g *graph.Graph, name string, in, time int) int {
	defer g.Module(name)()
	x := g.Add(models.Layer{Name: "norm", Type: models.LayerNorm, Inputs: []int{in}, Out: slices.Clone(g.Shape(in))})
	x = modulation(g, "modulate", x, time)
	x = g.Unary(models.GELU, "net.0.gelu", g.Linear("net.0.proj", x, 4*g.Last(in), true))
	x = g.Linear("net.2", x, g.Last(in), true)
	return g.Plus("add", in, gated(g, "gate", x, time))
}

// buffer adds an untrained table, which is used only in part. numbers is its size.
func buffer(g *graph.Graph, name string, numbers int64, shape ...int64) int {
	i := g.Op(models.Copy, name, shape, graph.Data)
	g.Layers[i].Params, g.Layers[i].Frozen, g.Layers[i].Bits, g.Layers[i].Whole = []int64{numbers}, true, 32, true
	return i
}

// fusedNorm adds PyTorch's RMSNorm over each head, which has key numbers.
func fusedNorm(g *graph.Graph, name string, in int, key int64) int {
	return g.Add(models.Layer{Name: name, Type: models.RMSNorm, Inputs: []int{in}, Out: slices.Clone(g.Shape(in)), Params: []int64{key}})
}

// turn adds a rotary embedding as the diffusers library computes it, in 32 bits.
func turn(g *graph.Graph, name string, in int) int {
	defer g.Module("rotary_" + name)()
	return g.Plus("add", g.Scale("cos", in), g.Scale("sin", g.Unary(models.Concat, "stack", in)))
}

// Flux is a FluxTransformer2DModel of the diffusers library. Its first blocks process the
// tokens of the image and of the prompt separately, the other blocks all tokens together.
type Flux struct {
	Double, Single, Heads, Head int64
	Text, Pooled, Tokens        int64
	Channels                    int64 // number of channels of a patch
	Guidance                    bool
}

func (f *Flux) build(g *graph.Graph, latents, text, pooled int) int {
	width := f.Heads * f.Head
	s := g.Shape(latents)
	x := g.CopyOf("packed", latents, s[1]*s[2]/4, 4*s[0])
	x = g.Linear("x_embedder", x, width, true)
	time := timeAndText(g, pooled, width, f.Pooled, f.Guidance)
	context := g.Linear("context_embedder", text, width, true)
	j := joint{heads: f.Heads, norm: true, rotary: true}
	for i := range f.Double {
		leave := g.StartBlock(fmt.Sprintf("transformer_blocks.%d", i))
		y, c := modulated(g, "norm1", x, time, 6), modulated(g, "norm1_context", context, time, 6)
		a, b := j.attention(g, "attn", y, c, true)
		x = feed(g, "ff", g.Plus("add1", x, gated(g, "gate", a, time)), time)
		context = feed(g, "ff_context", g.Plus("add_context", context, gated(g, "gate_context", b, time)), time)
		leave()
	}
	n := g.Shape(x)[0]
	for i := range f.Single {
		x = f.single(g, fmt.Sprintf("single_transformer_blocks.%d", i), x, context, time)
		context, x = g.View("text", x, f.Tokens, width), g.View("image", x, n, width)
	}
	return g.Linear("proj_out", modulated(g, "norm_out", x, time, 2), f.Channels, true)
}

func (f *Flux) single(g *graph.Graph, name string, x, context, time int) int {
	defer g.StartBlock(name)()
	in := g.Concat("cat", context, x)
	y := modulated(g, "norm", in, time, 3)
	inner := g.Unary(models.GELU, "act_mlp", g.Linear("proj_mlp", y, 4*g.Last(in), true))
	a, _ := joint{heads: f.Heads, norm: true, rotary: true}.attention(g, "attn", y, -1, false)
	s := slices.Clone(g.Shape(in))
	s[1] *= 5
	z := g.Linear("proj_out", g.Op(models.Concat, "cat_mlp", s, a, inner), g.Last(in), true)
	return g.Plus("add", in, gated(g, "gate", z, time))
}
