package zoo

import (
	"fmt"

	"carma/configs/models"
)

// Autoencoder is an AutoencoderKL of the diffusers library.
type Autoencoder struct {
	Channels []int64
	Depth    int64 // layers per block
	Latent   int64
	Quant    bool // 1 x 1 convolutions at the latents
}

// stableVAE is the autoencoder of Stable Diffusion and Flux.
func stableVAE(latent int64, quant bool) *Autoencoder {
	return &Autoencoder{Channels: []int64{128, 256, 512, 512}, Depth: 2, Latent: latent, Quant: quant}
}

// frozen encodes images without a gradient. The decoder is only stored.
func (a *Autoencoder) frozen(g *graph, image int64, wide bool) int {
	bits := 0
	if wide {
		bits = 32
	}
	defer g.freeze(bits)()
	defer g.module("vae")()
	size := 0
	if wide {
		size = 4
	}
	x := a.encode(g, g.newInput(size, 3, image, image))
	s := g.shape(x)
	x = g.op(models.Copy, "sample", []int64{a.Latent, s[1], s[2]}, x)
	decoder := &graph{}
	decoder.input(0, a.Latent, 8, 8)
	a.decode(decoder, data)
	var params []int64
	for _, l := range decoder.layers {
		params = append(params, l.Params...)
	}
	return g.stored("decoder", x, params)
}

// Config is the training of the autoencoder on the reconstruction of images.
func (a *Autoencoder) Config(name string, o models.Overrides) (*models.Config, error) {
	e := entry{name: name, kind: models.Conv, batch: 1, size: settings{image: 256}, build: func(g *graph, s settings) {
		if s.image%64 != 0 {
			g.fail("the image has %d pixels, not a multiple of 64", s.image)
			s.image = 64
		}
		g.input(0, 3, s.image, s.image)
		x := a.encode(g, data)
		h := g.shape(x)
		g.loss("loss", a.decode(g, g.op(models.Add, "sample", []int64{a.Latent, h[1], h[2]}, x)))
	}}
	return e.config("", o)
}

func (a *Autoencoder) encode(g *graph, in int) int {
	defer g.module("encoder")()
	x := g.conv("conv_in", in, window{out: a.Channels[0], kernel: 3, pad: 1, bias: true})
	for i, out := range a.Channels {
		leave := g.module(fmt.Sprintf("down_blocks.%d", i))
		before := x
		for k := range a.Depth {
			x = g.resBlock(fmt.Sprintf("resnets.%d", k), x, -1, out)
		}
		g.held(x, before)
		if i < len(a.Channels)-1 {
			s := g.shape(x)
			x = g.op(models.Pad, "pad", []int64{s[0], s[1] + 1, s[2] + 1}, x)
			x = g.conv("downsamplers.0.conv", x, window{out: out, kernel: 3, stride: 2, bias: true})
		}
		leave()
	}
	x = g.unary(models.SiLU, "conv_act", g.groupNorm("conv_norm_out", a.middle(g, x)))
	x = g.conv("conv_out", x, window{out: 2 * a.Latent, kernel: 3, pad: 1, bias: true})
	if a.Quant {
		x = g.conv("quant_conv", x, window{out: 2 * a.Latent, bias: true})
	}
	return x
}

// middle is the mid block: attention with one head between two residual blocks.
func (a *Autoencoder) middle(g *graph, x int) int {
	defer g.module("mid_block")()
	c := g.shape(x)[0]
	x = g.resBlock("resnets.0", x, -1, c)
	leave := g.module("attentions.0")
	s := g.shape(x)
	y := g.view("tokens", g.groupNorm("group_norm", x), s[1]*s[2], c)
	q, k, v := g.linear("to_q", y, c, true), g.linear("to_k", y, c, true), g.linear("to_v", y, c, true)
	y = g.linear("to_out", g.attend("sdpa", q, k, v, 1), c, true)
	y = g.scale("rescale", g.plus("add", g.view("image", y, s...), x))
	leave()
	return g.resBlock("resnets.1", y, -1, c)
}

func (a *Autoencoder) decode(g *graph, x int) int {
	defer g.module("decoder")()
	if a.Quant {
		x = g.conv("post_quant_conv", x, window{out: a.Latent, bias: true})
	}
	last := len(a.Channels) - 1
	x = g.conv("conv_in", x, window{out: a.Channels[last], kernel: 3, pad: 1, bias: true})
	x = a.middle(g, x)
	for i := last; i >= 0; i-- {
		leave := g.module(fmt.Sprintf("up_blocks.%d", last-i))
		for k := range a.Depth + 1 {
			x = g.resBlock(fmt.Sprintf("resnets.%d", k), x, -1, a.Channels[i])
		}
		if i > 0 {
			x = g.conv("upsamplers.0.conv", g.upsample("upsamplers.0", x), window{out: a.Channels[i], kernel: 3, pad: 1, bias: true})
		}
		leave()
	}
	x = g.unary(models.SiLU, "conv_act", g.groupNorm("conv_norm_out", x))
	return g.conv("conv_out", x, window{out: 3, kernel: 3, pad: 1, bias: true})
}
