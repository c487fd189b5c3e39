package zoo

import (
	"fmt"
	"slices"

	"carma/configs/models"
)

// MMDiT is an SD3Transformer2DModel of the diffusers library: tokens of the image
// and of the prompt go through blocks side by side.
type MMDiT struct {
	Depth, Heads, Head int64
	Text, Pooled       int64 // widths of the prompt and of its sum
	Tokens             int64 // of the prompt
	Positions          int64 // side of the table of positions, in patches
	Channels           int64 // of a latent
	Norm               bool  // queries and keys are normed
	Dual               int64 // the first blocks have a second attention of the image's tokens
}

func (m *MMDiT) build(g *graph, latents, text, pooled int) int {
	width := m.Heads * m.Head
	x := g.conv("pos_embed.proj", latents, window{out: width, kernel: 2, stride: 2, bias: true})
	s := g.shape(x)
	n := s[1] * s[2]
	if s[1] > m.Positions {
		g.fail("the image is too large: %d patches a side, and %d positions", s[1], m.Positions)
	}
	x = g.plus("pos_embed", g.view("tokens", x, n, width), g.buffer("pos_embed.table", m.Positions*m.Positions*width, n, width))
	x = g.copyOf("contiguous", x, n, width)
	time := g.timeAndText(pooled, width, m.Pooled, false)
	context := g.linear("context_embedder", text, width, true)
	for i := range m.Depth {
		x, context = m.block(g, fmt.Sprintf("transformer_blocks.%d", i), x, context, time, i)
	}
	x = g.modulated("norm_out", x, time, 2)
	return g.linear("proj_out", x, 4*m.Channels, true)
}

// block is a JointTransformerBlock. The last one leaves the prompt as it is.
func (m *MMDiT) block(g *graph, name string, x, context, time int, i int64) (int, int) {
	defer g.startBlock(name)()
	last := i == m.Depth-1
	parts, rest := int64(6), int64(6)
	if i < m.Dual {
		parts = 9
	}
	if last {
		rest = 2
	}
	y, c := g.modulated("norm1", x, time, parts), g.modulated("norm1_context", context, time, rest)
	joint := joint{heads: m.Heads, norm: m.Norm}
	a, b := joint.attention(g, "attn", y, c, !last)
	x = g.plus("add1", x, g.gated("gate1", a, time))
	if i < m.Dual {
		second, _ := joint.attention(g, "attn2", g.modulation("norm1.second", y, time), -1, true)
		x = g.plus("add_second", x, g.gated("gate_second", second, time))
	}
	x = g.feed("ff", x, time)
	if last {
		return x, context
	}
	context = g.plus("add_context", context, g.gated("gate_context", b, time))
	return x, g.feed("ff_context", context, time)
}

// joint is the attention of the image's and the prompt's tokens together.
type joint struct {
	heads  int64
	norm   bool
	rotary bool
}

// attention is without a prompt if c is negative. out: the prompt's tokens, or else
// the image's, are projected too.
func (j joint) attention(g *graph, name string, x, c int, out bool) (int, int) {
	defer g.module(name)()
	width, n := g.last(x), g.shape(x)[0]
	var all [3]int
	for k, part := range []string{"q", "k", "v"} {
		y := g.linear("to_"+part, x, width, true)
		if j.norm && part != "v" {
			y = g.fusedNorm("norm_"+part, y, width/j.heads)
		}
		if c >= 0 {
			z := g.linear("add_"+part+"_proj", c, width, true)
			if j.norm && part != "v" {
				z = g.fusedNorm("norm_added_"+part, z, width/j.heads)
			}
			y = g.concat("cat_"+part, y, z)
		}
		if j.rotary && part != "v" {
			y = g.turn(part, y)
		}
		all[k] = y
	}
	a := g.attend("sdpa", all[0], all[1], all[2], j.heads)
	if c < 0 {
		if out {
			a = g.linear("to_out", a, width, true)
		}
		return a, -1
	}
	side := g.view("image", a, n, width)
	text := g.view("text", a, g.shape(c)[0], width)
	side = g.linear("to_out", g.copyOf("image.copy", side, n, width), width, true)
	if out {
		text = g.linear("to_add_out", g.copyOf("text.copy", text, g.shape(c)[0], width), width, true)
	}
	return side, text
}

// timeAndText are the embeddings of time, of guidance, and of the sum of the prompt.
func (g *graph) timeAndText(pooled int, width, sum int64, guidance bool) int {
	defer g.module("time_text_embed")()
	embed := func(name string, in int) int {
		defer g.module(name)()
		return g.linear("linear_2", g.unary(models.SiLU, "act", g.linear("linear_1", in, width, true)), width, true)
	}
	x := embed("timestep_embedder", g.newInput(0, 256))
	if guidance {
		x = g.plus("add_guidance", x, embed("guidance_embedder", g.newInput(0, 256)))
	}
	return g.plus("add", x, embed("text_embedder", pooled))
}

// modulated is a layer norm whose scale and shift come from the time; parts is how
// many vectors its linear layer makes.
func (g *graph) modulated(name string, x, time int, parts int64) int {
	defer g.module(name)()
	vectors := g.linear("linear", g.unary(models.SiLU, "silu", time), parts*g.last(x), true)
	n := g.add(models.Layer{Name: "norm", Type: models.LayerNorm, Inputs: []int{x}, Out: slices.Clone(g.shape(x))})
	return g.modulation("modulate", n, vectors)
}

// modulation multiplies and adds vectors. Their gradient needs what they multiply.
func (g *graph) modulation(name string, x, time int) int {
	return g.plus(name+".shift", g.gated(name+".scale", x, time), time)
}

// gated multiplies tokens by a vector that comes from the time.
func (g *graph) gated(name string, x, time int) int {
	i := g.op(models.Mul, name, g.shape(x), x, time)
	keeps := models.Keeps{Inputs: []int{0, 1}}
	if g.rank > 0 { // the vector is not trained
		keeps.Inputs = []int{1}
	}
	return g.keeping(i, keeps)
}

// feed is the feed-forward part of a block with its norm and gate.
func (g *graph) feed(name string, in, time int) int {
	defer g.module(name)()
	x := g.add(models.Layer{Name: "norm", Type: models.LayerNorm, Inputs: []int{in}, Out: slices.Clone(g.shape(in))})
	x = g.modulation("modulate", x, time)
	x = g.unary(models.GELU, "net.0.gelu", g.linear("net.0.proj", x, 4*g.last(in), true))
	x = g.linear("net.2", x, g.last(in), true)
	return g.plus("add", in, g.gated("gate", x, time))
}

// buffer is a table of so many numbers that is not trained. A part of it is used.
func (g *graph) buffer(name string, numbers int64, shape ...int64) int {
	i := g.op(models.Copy, name, shape, data)
	g.layers[i].Params, g.layers[i].Frozen, g.layers[i].Bits, g.layers[i].Whole = []int64{numbers}, true, 32, true
	return i
}

// fusedNorm is PyTorch's RMSNorm of each head of key numbers.
func (g *graph) fusedNorm(name string, in int, key int64) int {
	return g.add(models.Layer{Name: name, Type: models.RMSNorm, Inputs: []int{in}, Out: slices.Clone(g.shape(in)), Params: []int64{key}})
}

// turn is a rotary embedding as the diffusers library computes it, in 32 bits.
func (g *graph) turn(name string, in int) int {
	defer g.module("rotary_" + name)()
	return g.plus("add", g.scale("cos", in), g.scale("sin", g.unary(models.Concat, "stack", in)))
}

// Flux is a FluxTransformer2DModel of the diffusers library: blocks side by side,
// then blocks of all tokens together.
type Flux struct {
	Double, Single, Heads, Head int64
	Text, Pooled, Tokens        int64
	Channels                    int64 // of a patch
	Guidance                    bool
}

func (f *Flux) build(g *graph, latents, text, pooled int) int {
	width := f.Heads * f.Head
	s := g.shape(latents)
	x := g.copyOf("packed", latents, s[1]*s[2]/4, 4*s[0])
	x = g.linear("x_embedder", x, width, true)
	time := g.timeAndText(pooled, width, f.Pooled, f.Guidance)
	context := g.linear("context_embedder", text, width, true)
	j := joint{heads: f.Heads, norm: true, rotary: true}
	for i := range f.Double {
		leave := g.startBlock(fmt.Sprintf("transformer_blocks.%d", i))
		y, c := g.modulated("norm1", x, time, 6), g.modulated("norm1_context", context, time, 6)
		a, b := j.attention(g, "attn", y, c, true)
		x = g.feed("ff", g.plus("add1", x, g.gated("gate", a, time)), time)
		context = g.feed("ff_context", g.plus("add_context", context, g.gated("gate_context", b, time)), time)
		leave()
	}
	n := g.shape(x)[0]
	for i := range f.Single {
		x = f.single(g, fmt.Sprintf("single_transformer_blocks.%d", i), x, context, time)
		context, x = g.view("text", x, f.Tokens, width), g.view("image", x, n, width)
	}
	return g.linear("proj_out", g.modulated("norm_out", x, time, 2), f.Channels, true)
}

func (f *Flux) single(g *graph, name string, x, context, time int) int {
	defer g.startBlock(name)()
	in := g.concat("cat", context, x)
	y := g.modulated("norm", in, time, 3)
	inner := g.unary(models.GELU, "act_mlp", g.linear("proj_mlp", y, 4*g.last(in), true))
	a, _ := joint{heads: f.Heads, norm: true, rotary: true}.attention(g, "attn", y, -1, false)
	s := slices.Clone(g.shape(in))
	s[1] *= 5
	z := g.linear("proj_out", g.op(models.Concat, "cat_mlp", s, a, inner), g.last(in), true)
	return g.plus("add", in, g.gated("gate", z, time))
}
