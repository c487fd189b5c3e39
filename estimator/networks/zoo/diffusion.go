package zoo

import (
	"fmt"
	"slices"

	"carma/configs/models"
)

// Diffusion is the training of a network that predicts noise, as the scripts of the
// diffusers library train it. Exactly one of UNet, MMDiT and Flux is set.
//
// With mixed precision all that is frozen has 16 bits. Adapters have 32, and the step
// runs under autocast then.
type Diffusion struct {
	Name  string
	UNet  *UNet
	MMDiT *MMDiT
	Flux  *Flux
	// VAE makes the latents of the images of each step; nil: they were made before.
	VAE *Autoencoder
	// WideVAE: the VAE stays in 32 bits.
	WideVAE bool
	// Text are the encoders of the prompts; none: the prompts were encoded before.
	Text []*PromptEncoder
	// Image is the side of an image in pixels, if none is asked for.
	Image int64
}

// Sizes of a latent.
const (
	pixelsOfLatent = 8
	clipTokens     = 77
)

// Config is the training of the network, by default with a batch of 1.
func (d *Diffusion) Config(o models.Overrides) (*models.Config, error) {
	return d.entry(d.Name).config("", o)
}

func (d *Diffusion) entry(name string, aliases ...string) entry {
	kind := models.Transformer
	if d.UNet != nil {
		kind = models.Conv
	}
	return entry{
		name: name, aliases: aliases, kind: kind, batch: 1, size: settings{image: d.Image},
		build: d.build, finish: d.finish,
	}
}

func (d *Diffusion) build(g *graph, s settings) {
	if s.image%64 != 0 {
		g.fail("the image has %d pixels, not a multiple of 64", s.image)
		s.image = 64
	}
	if g.rank > 0 && len(g.targets) == 0 {
		g.targets = d.targets()
	}
	g.targets = slices.Clone(g.targets)
	for i, t := range g.targets {
		if t == "to_out.0" { // it is the only layer of to_out
			g.targets[i] = "to_out"
		}
	}
	latent := s.image / pixelsOfLatent
	shape := []int64{d.channels(), latent, latent}
	text, pooled := d.prompts(g)
	var x int
	if d.VAE != nil {
		x = d.VAE.frozen(g, s.image, d.WideVAE)
	} else {
		x = g.newInput(0, shape...)
	}
	noisy := g.plus("add_noise", x, g.op(models.Copy, "noise", shape, x))
	var out int
	switch {
	case d.UNet != nil:
		out = d.UNet.build(g, noisy, text)
	case d.MMDiT != nil:
		out = d.MMDiT.build(g, noisy, text, pooled)
	default:
		out = d.Flux.build(g, noisy, text, pooled)
	}
	g.loss("loss", out)
}

func (d *Diffusion) channels() int64 {
	if d.UNet != nil {
		return d.UNet.In
	}
	return 16
}

// prompts are the encoded prompts and their sum.
func (d *Diffusion) prompts(g *graph) (text, pooled int) {
	tokens, width, sum := int64(clipTokens), int64(0), int64(1280)
	switch {
	case d.UNet != nil:
		width = d.UNet.Text
	case d.MMDiT != nil:
		tokens, width, sum = d.MMDiT.Tokens, d.MMDiT.Text, d.MMDiT.Pooled
	default:
		tokens, width, sum = d.Flux.Tokens, d.Flux.Text, d.Flux.Pooled
	}
	if len(d.Text) == 0 {
		return g.newInput(0, tokens, width), g.newInput(0, sum)
	}
	var encoded []int
	for i, e := range d.Text {
		encoded = append(encoded, e.frozen(g, fmt.Sprintf("text_encoder_%d", i+1)))
	}
	text = g.op(models.Concat, "encoder_hidden_states", []int64{tokens, width}, encoded...)
	return text, g.newInput(0, sum)
}

// targets are the layers that get adapters, as in the library's scripts.
func (d *Diffusion) targets() []string {
	names := []string{"to_q", "to_k", "to_v", "to_out"}
	if d.UNet == nil {
		names = append(names, "add_q_proj", "add_k_proj", "add_v_proj", "to_add_out")
	}
	if d.Flux != nil {
		names = append(names, "net.0.proj", "net.2")
	}
	return names
}

// finish sets the bits of what is frozen, and autocast with adapters.
func (d *Diffusion) finish(c *models.Config) {
	half := c.Train.Precision != models.FP32 && c.Train.Precision != ""
	if !half {
		return
	}
	adapted := false
	for i := range c.Layers {
		l := &c.Layers[i]
		if l.Frozen && l.Bits == 0 {
			l.Bits = 16
		}
		adapted = adapted || !l.Frozen && l.Bits == 32
	}
	for i := range c.Inputs {
		if c.Inputs[i].Bytes == 0 {
			c.Inputs[i].Bytes = 2
		}
	}
	if adapted {
		c.Train.Precision = models.AMP
	}
}

// newInput declares a tensor of the batch and returns its index.
func (g *graph) newInput(bytes int, shape ...int64) int {
	g.input(bytes, shape...)
	return -len(g.inputs)
}

// freeze makes all layers from now on frozen and run without autocast, with so many
// bits (0: those of what is frozen), until leave is called.
func (g *graph) freeze(bits int) (leave func()) {
	before, rank, targets := g.frozen, g.rank, g.targets
	g.frozen, g.rank, g.targets = &bits, 0, nil
	return func() { g.frozen, g.rank, g.targets = before, rank, targets }
}

// held says that variables of the program hold values until layer i. Without a
// gradient nothing else does.
func (g *graph) held(i int, values ...int) {
	if g.frozen != nil {
		g.layers[i].Inputs = append(g.layers[i].Inputs, values...)
	}
}

// stored adds parameters that no layer of the step uses.
func (g *graph) stored(name string, in int, params []int64) int {
	return g.add(models.Layer{Name: name, Type: models.View, Inputs: []int{in}, Out: slices.Clone(g.shape(in)), Params: params, Keeps: &models.Keeps{}, Frozen: true})
}

func (g *graph) groupNorm(name string, in int) int {
	n := g.shape(in)[0]
	return g.add(models.Layer{Name: name, Type: models.GroupNorm, Inputs: []int{in}, Out: slices.Clone(g.shape(in)), Params: []int64{n, n}})
}
