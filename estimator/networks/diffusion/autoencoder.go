package diffusion

import (
	"fmt"

	"carma/configs/models"
	"carma/estimator/networks/graph"
)

// Autoencoder is an AutoencoderKL of the diffusers library.
type Autoencoder struct {
	Channels []int64
	Depth    int64 // layers per block
	Latent   int64
	Quant    bool // 1 x 1 convolutions at the latents
}

// stableVAE returns the autoencoder of Stable Diffusion and Flux.
func stableVAE(latent int64, quant bool) *Autoencoder {
	return &Autoencoder{Channels: []int64{128, 256, 512, 512}, Depth: 2, Latent: latent, Quant: quant}
}

// frozen encodes images without a gradient. The decoder is only stored.
func (a *Autoencoder) frozen(g *graph.Graph, image int64, wide bool) int {
	bits := 0
	if wide {
		bits = 32
	}
	defer g.Freeze(bits)()
	defer g.Module("vae")()
	size := 0
	if wide {
		size = 4
	}
	x := a.encode(g, g.NewInput(size, 3, image, image))
	s := g.Shape(x)
	x = g.Op(models.Copy, "sample", []int64{a.Latent, s[1], s[2]}, x)
	decoder := &graph.Graph{}
	decoder.Input(0, a.Latent, 8, 8)
	a.decode(decoder, graph.Data)
	var params []int64
	for _, l := range decoder.Layers {
		params = append(params, l.Params...)
	}
	return g.Stored("decoder", x, params)
}

// Config returns the training of the autoencoder to reconstruct images.
func (a *Autoencoder) Config(name string, o models.Overrides) (*models.Config, error) {
	e := graph.Network{Name: name, Kind: models.Conv, Batch: 1, Size: graph.Sizes{Image: 256}, Build: func(g *graph.Graph, s graph.Sizes) {
		if s.Image%64 != 0 {
			g.Fail("the image has %d pixels, not a multiple of 64", s.Image)
			s.Image = 64
		}
		g.Input(0, 3, s.Image, s.Image)
		x := a.encode(g, graph.Data)
		h := g.Shape(x)
		g.Loss("loss", a.decode(g, g.Op(models.Add, "sample", []int64{a.Latent, h[1], h[2]}, x)))
	}}
	return e.Config("", o)
}

func (a *Autoencoder) encode(g *graph.Graph, in int) int {
	defer g.Module("encoder")()
	x := g.Conv("conv_in", in, graph.Window{Out: a.Channels[0], Kernel: 3, Pad: 1, Bias: true})
	for i, out := range a.Channels {
		leave := g.Module(fmt.Sprintf("down_blocks.%d", i))
		before := x
		for k := range a.Depth {
			x = resBlock(g, fmt.Sprintf("resnets.%d", k), x, -1, out)
		}
		held(g, x, before)
		if i < len(a.Channels)-1 {
			s := g.Shape(x)
			x = g.Op(models.Pad, "pad", []int64{s[0], s[1] + 1, s[2] + 1}, x)
			x = g.Conv("downsamplers.0.conv", x, graph.Window{Out: out, Kernel: 3, Stride: 2, Bias: true})
		}
		leave()
	}
	x = g.Unary(models.SiLU, "conv_act", g.GroupNorm("conv_norm_out", a.middle(g, x)))
	x = g.Conv("conv_out", x, graph.Window{Out: 2 * a.Latent, Kernel: 3, Pad: 1, Bias: true})
	if a.Quant {
		x = g.Conv("quant_conv", x, graph.Window{Out: 2 * a.Latent, Bias: true})
	}
	return x
}

// middle adds the mid block: attention with one head between two residual blocks.
func (a *Autoencoder) middle(g *graph.Graph, x int) int {
	defer g.Module("mid_block")()
	c := g.Shape(x)[0]
	x = resBlock(g, "resnets.0", x, -1, c)
	leave := g.Module("attentions.0")
	s := g.Shape(x)
	y := g.View("tokens", g.GroupNorm("group_norm", x), s[1]*s[2], c)
	q, k, v := g.Linear("to_q", y, c, true), g.Linear("to_k", y, c, true), g.Linear("to_v", y, c, true)
	y = g.Linear("to_out", g.Attend("sdpa", q, k, v, 1), c, true)
	y = g.Scale("rescale", g.Plus("add", g.View("image", y, s...), x))
	leave()
	return resBlock(g, "resnets.1", y, -1, c)
}

func (a *Autoencoder) decode(g *graph.Graph, x int) int {
	defer g.Module("decoder")()
	if a.Quant {
		x = g.Conv("post_quant_conv", x, graph.Window{Out: a.Latent, Bias: true})
	}
	last := len(a.Channels) - 1
	x = g.Conv("conv_in", x, graph.Window{Out: a.Channels[last], Kernel: 3, Pad: 1, Bias: true})
	x = a.middle(g, x)
	for i := last; i >= 0; i-- {
		leave := g.Module(fmt.Sprintf("up_blocks.%d", last-i))
		for k := range a.Depth + 1 {
			x = resBlock(g, fmt.Sprintf("resnets.%d", k), x, -1, a.Channels[i])
		}
		if i > 0 {
			x = g.Conv("upsamplers.0.conv", g.Upsample("upsamplers.0", x), graph.Window{Out: a.Channels[i], Kernel: 3, Pad: 1, Bias: true})
		}
		leave()
	}
	x = g.Unary(models.SiLU, "conv_act", g.GroupNorm("conv_norm_out", x))
	return g.Conv("conv_out", x, graph.Window{Out: 3, Kernel: 3, Pad: 1, Bias: true})
}
