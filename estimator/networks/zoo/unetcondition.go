package zoo

import (
	"fmt"
	"slices"

	"carma/configs/models"
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
	Added        int64  // width of what is added to the time; 0: nothing
}

// build adds the network. latents and text are indices of layers or inputs.
func (u *UNet) build(g *graph, latents, text int) int {
	first := u.Channels[0]
	wide := 4 * first
	time := g.unary(models.SiLU, "time_embedding.act", g.linear("time_embedding.linear_1", g.newInput(0, first), wide, true))
	time = g.linear("time_embedding.linear_2", time, wide, true)
	if u.Added > 0 {
		added := g.unary(models.SiLU, "add_embedding.act", g.linear("add_embedding.linear_1", g.newInput(0, u.Added), wide, true))
		time = g.plus("add_embedding", time, g.linear("add_embedding.linear_2", added, wide, true))
	}
	x := g.conv("conv_in", latents, window{out: first, kernel: 3, pad: 1, bias: true})
	skips := []int{x}
	for i, out := range u.Channels {
		leave := g.module(fmt.Sprintf("down_blocks.%d", i))
		for k := range u.Depth {
			x = u.stage(g, k, x, time, text, out, i, u.Down[i])
			skips = append(skips, x)
		}
		if i < len(u.Channels)-1 {
			x = g.conv("downsamplers.0.conv", x, window{out: out, kernel: 3, stride: 2, pad: 1, bias: true})
			skips = append(skips, x)
		}
		leave()
	}
	x = u.middle(g, x, time, text)
	last := len(u.Channels) - 1
	for up := range u.Channels {
		i := last - up
		leave := g.module(fmt.Sprintf("up_blocks.%d", up))
		for k := range u.Depth + 1 {
			x = g.concat("concat", x, skips[len(skips)-1])
			skips = skips[:len(skips)-1]
			x = u.stage(g, k, x, time, text, u.Channels[i], i, u.Up[up])
		}
		if i > 0 {
			x = g.conv("upsamplers.0.conv", g.upsample("upsamplers.0", x), window{out: u.Channels[i], kernel: 3, pad: 1, bias: true})
		}
		leave()
	}
	x = g.unary(models.SiLU, "conv_act", g.groupNorm("conv_norm_out", x))
	return g.conv("conv_out", x, window{out: u.Out, kernel: 3, pad: 1, bias: true})
}

// stage is a residual block, and the transformer blocks after it.
func (u *UNet) stage(g *graph, k int64, x, time, text int, out int64, level int, attention bool) int {
	x = g.resBlock(fmt.Sprintf("resnets.%d", k), x, time, out)
	if attention {
		x = u.transformer(g, fmt.Sprintf("attentions.%d", k), x, text, u.Heads[level], u.Transformers[level])
	}
	return x
}

func (u *UNet) middle(g *graph, x, time, text int) int {
	defer g.module("mid_block")()
	last := len(u.Channels) - 1
	x = g.resBlock("resnets.0", x, time, u.Channels[last])
	if u.Middle {
		x = u.transformer(g, "attentions.0", x, text, u.Heads[last], u.Transformers[last])
	}
	return g.resBlock("resnets.1", x, time, u.Channels[last])
}

// resBlock is a ResnetBlock2D. time is a negative number that is no input if there is
// no time.
func (g *graph) resBlock(name string, in, time int, out int64) int {
	defer g.startBlock(name)()
	x := g.unary(models.SiLU, "act1", g.groupNorm("norm1", in))
	x = g.conv("conv1", x, window{out: out, kernel: 3, pad: 1, bias: true})
	if time >= 0 {
		t := g.linear("time_emb_proj", g.unary(models.SiLU, "time_act", time), out, true)
		x = g.op(models.Add, "time_add", g.shape(x), x, t)
	}
	x = g.unary(models.SiLU, "act2", g.groupNorm("norm2", x))
	x = g.conv("conv2", x, window{out: out, kernel: 3, pad: 1, bias: true})
	if g.shape(in)[0] != out {
		in = g.conv("conv_shortcut", in, window{out: out, bias: true})
	}
	sum := g.plus("add", in, x)
	scaled := g.scale("rescale", sum)
	g.held(scaled, in, x)
	return scaled
}

// transformer is a Transformer2DModel.
func (u *UNet) transformer(g *graph, name string, in, text int, heads, depth int64) int {
	defer g.module(name)()
	s := g.shape(in)
	c, n := s[0], s[1]*s[2]
	x := g.groupNorm("norm", in)
	if u.Linear {
		x = g.linear("proj_in", g.view("tokens", x, n, c), c, true)
	} else {
		x = g.view("tokens", g.conv("proj_in", x, window{out: c, bias: true}), n, c)
	}
	for i := range depth {
		x = u.block(g, fmt.Sprintf("transformer_blocks.%d", i), x, text, heads)
	}
	if u.Linear {
		x = g.view("image", g.linear("proj_out", x, c, true), s...)
	} else {
		x = g.conv("proj_out", g.copyOf("image", x, s...), window{out: c, bias: true})
	}
	return g.plus("add", x, in)
}

// block is a BasicTransformerBlock: attention to itself and to the prompt, and a
// gated part.
func (u *UNet) block(g *graph, name string, in, text int, heads int64) int {
	defer g.startBlock(name)()
	x := g.layerNorm("norm1", in)
	in = g.plus("add1", g.crossAttention("attn1", x, x, heads), in)
	in = g.plus("add2", g.crossAttention("attn2", g.layerNorm("norm2", in), text, heads), in)
	x = g.linear("ff.net.0.proj", g.layerNorm("norm3", in), 8*g.last(in), true)
	s := slices.Clone(g.shape(in))
	s[1] *= 4
	value, gate := g.view("value", x, s...), g.view("gate", x, s...)
	x = g.times("ff.mul", value, g.unary(models.GELU, "ff.gelu", gate))
	return g.plus("add3", g.linear("ff.net.2", x, g.last(in), true), in)
}

func (g *graph) crossAttention(name string, x, from int, heads int64) int {
	defer g.module(name)()
	c := g.last(x)
	q, k, v := g.linear("to_q", x, c, false), g.linear("to_k", from, c, false), g.linear("to_v", from, c, false)
	return g.scale("rescale", g.linear("to_out", g.attend("sdpa", q, k, v, heads), c, true))
}
