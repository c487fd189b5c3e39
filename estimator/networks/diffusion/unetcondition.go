package diffusion

import (
	"fmt"
	"slices"

	"carma/configs/models"
	"carma/estimator/networks/graph"
)

// UNet is a UNet2DConditionModel of the diffusers library.
type UNet struct {
	In, Out  int64
	Channels []int64 // by level
	Depth    int64   // residual blocks of a level
	Text     int64   // width of the prompts
	Heads    []int64 // by level
	// Transformers is the number of transformer blocks after each residual block, by
	// level.
	Transformers []int64
	Down, Up     []bool // levels with attention
	Middle       bool   // attention in the middle
	Linear       bool   // the projections around the blocks are linear layers
	Added        int64  // width of the vector that is added to the time embedding, or 0 if none
}

// build adds the network. latents and text are indices of layers or inputs.
func (u *UNet) build(g *graph.Graph, latents, text int) int {
	first := u.Channels[0]
	wide := 4 * first
	time := g.Unary(models.SiLU, "time_embedding.act", g.Linear("time_embedding.linear_1", g.NewInput(0, first), wide, true))
	time = g.Linear("time_embedding.linear_2", time, wide, true)
	if u.Added > 0 {
		added := g.Unary(models.SiLU, "add_embedding.act", g.Linear("add_embedding.linear_1", g.NewInput(0, u.Added), wide, true))
		time = g.Plus("add_embedding", time, g.Linear("add_embedding.linear_2", added, wide, true))
	}
	x := g.Conv("conv_in", latents, graph.Window{Out: first, Kernel: 3, Pad: 1, Bias: true})
	skips := []int{x}
	for i, out := range u.Channels {
		leave := g.Module(fmt.Sprintf("down_blocks.%d", i))
		for k := range u.Depth {
			x = u.stage(g, k, x, time, text, out, i, u.Down[i])
			skips = append(skips, x)
		}
		if i < len(u.Channels)-1 {
			x = g.Conv("downsamplers.0.conv", x, graph.Window{Out: out, Kernel: 3, Stride: 2, Pad: 1, Bias: true})
			skips = append(skips, x)
		}
		leave()
	}
	x = u.middle(g, x, time, text)
	last := len(u.Channels) - 1
	for up := range u.Channels {
		i := last - up
		leave := g.Module(fmt.Sprintf("up_blocks.%d", up))
		for k := range u.Depth + 1 {
			x = g.Concat("concat", x, skips[len(skips)-1])
			skips = skips[:len(skips)-1]
			x = u.stage(g, k, x, time, text, u.Channels[i], i, u.Up[up])
		}
		if i > 0 {
			x = g.Conv("upsamplers.0.conv", g.Upsample("upsamplers.0", x), graph.Window{Out: u.Channels[i], Kernel: 3, Pad: 1, Bias: true})
		}
		leave()
	}
	x = g.Unary(models.SiLU, "conv_act", g.GroupNorm("conv_norm_out", x))
	return g.Conv("conv_out", x, graph.Window{Out: u.Out, Kernel: 3, Pad: 1, Bias: true})
}

// stage adds a residual block and the transformer blocks after it.
func (u *UNet) stage(g *graph.Graph, k int64, x, time, text int, out int64, level int, attention bool) int {
	x = resBlock(g, fmt.Sprintf("resnets.%d", k), x, time, out)
	if attention {
		x = u.transformer(g, fmt.Sprintf("attentions.%d", k), x, text, u.Heads[level], u.Transformers[level])
	}
	return x
}

func (u *UNet) middle(g *graph.Graph, x, time, text int) int {
	defer g.Module("mid_block")()
	last := len(u.Channels) - 1
	x = resBlock(g, "resnets.0", x, time, u.Channels[last])
	if u.Middle {
		x = u.transformer(g, "attentions.0", x, text, u.Heads[last], u.Transformers[last])
	}
	return resBlock(g, "resnets.1", x, time, u.Channels[last])
}

// resBlock adds a ResnetBlock2D. If there is no time embedding, time is a negative number
// that is not the index of an input.
func resBlock(g *graph.Graph, name string, in, time int, out int64) int {
	defer g.StartBlock(name)()
	x := g.Unary(models.SiLU, "act1", g.GroupNorm("norm1", in))
	x = g.Conv("conv1", x, graph.Window{Out: out, Kernel: 3, Pad: 1, Bias: true})
	if time >= 0 {
		t := g.Linear("time_emb_proj", g.Unary(models.SiLU, "time_act", time), out, true)
		x = g.Op(models.Add, "time_add", g.Shape(x), x, t)
	}
	x = g.Unary(models.SiLU, "act2", g.GroupNorm("norm2", x))
	x = g.Conv("conv2", x, graph.Window{Out: out, Kernel: 3, Pad: 1, Bias: true})
	if g.Shape(in)[0] != out {
		in = g.Conv("conv_shortcut", in, graph.Window{Out: out, Bias: true})
	}
	sum := g.Plus("add", in, x)
	scaled := g.Scale("rescale", sum)
	held(g, scaled, in, x)
	return scaled
}

// transformer adds a Transformer2DModel.
func (u *UNet) transformer(g *graph.Graph, name string, in, text int, heads, depth int64) int {
	defer g.Module(name)()
	s := g.Shape(in)
	c, n := s[0], s[1]*s[2]
	x := g.GroupNorm("norm", in)
	if u.Linear {
		x = g.Linear("proj_in", g.View("tokens", x, n, c), c, true)
	} else {
		x = g.View("tokens", g.Conv("proj_in", x, graph.Window{Out: c, Bias: true}), n, c)
	}
	for i := range depth {
		x = u.block(g, fmt.Sprintf("transformer_blocks.%d", i), x, text, heads)
	}
	if u.Linear {
		x = g.View("image", g.Linear("proj_out", x, c, true), s...)
	} else {
		x = g.Conv("proj_out", g.CopyOf("image", x, s...), graph.Window{Out: c, Bias: true})
	}
	return g.Plus("add", x, in)
}

// block adds a BasicTransformerBlock: self-attention, cross-attention to the prompt, and a
// gated feed-forward part.
func (u *UNet) block(g *graph.Graph, name string, in, text int, heads int64) int {
	defer g.StartBlock(name)()
	x := g.LayerNorm("norm1", in)
	in = g.Plus("add1", crossAttention(g, "attn1", x, x, heads), in)
	in = g.Plus("add2", crossAttention(g, "attn2", g.LayerNorm("norm2", in), text, heads), in)
	x = g.Linear("ff.net.0.proj", g.LayerNorm("norm3", in), 8*g.Last(in), true)
	s := slices.Clone(g.Shape(in))
	s[1] *= 4
	value, gate := g.View("value", x, s...), g.View("gate", x, s...)
	x = g.Times("ff.mul", value, g.Unary(models.GELU, "ff.gelu", gate))
	return g.Plus("add3", g.Linear("ff.net.2", x, g.Last(in), true), in)
}

func crossAttention(g *graph.Graph, name string, x, from int, heads int64) int {
	defer g.Module(name)()
	c := g.Last(x)
	q, k, v := g.Linear("to_q", x, c, false), g.Linear("to_k", from, c, false), g.Linear("to_v", from, c, false)
	return g.Scale("rescale", g.Linear("to_out", g.Attend("sdpa", q, k, v, heads), c, true))
}
