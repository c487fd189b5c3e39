package diffusion

import (
	"fmt"
	"slices"

	"carma/configs/models"
	"carma/estimator/networks/graph"
)

// Diffusion is the training of a network that predicts noise, as the scripts of the
// diffusers library train it. Exactly one of UNet, MMDiT and Flux is set.
//
// With mixed precision, frozen layers have 16 bits. Adapters have 32 bits, and the step
// then runs under autocast.
type Diffusion struct {
	Name  string
	UNet  *UNet
	MMDiT *MMDiT
	Flux  *Flux
	// VAE encodes the images of each step to latents. It is nil if the latents were
	// computed before the training.
	VAE *Autoencoder
	// WideVAE is set if the VAE has 32 bits even with mixed precision.
	WideVAE bool
	// Text lists the encoders of the prompts. It is empty if the prompts were encoded before
	// the training.
	Text []*PromptEncoder
	// Image is the default side of an image in pixels.
	Image int64
}

// Sizes of a latent.
const (
	pixelsOfLatent = 8
	clipTokens     = 77
)

// Config returns the training of the network. Its default batch size is 1.
func (d *Diffusion) Config(o models.Overrides) (*models.Config, error) {
	return d.entry(d.Name).Config("", o)
}

func (d *Diffusion) entry(name string, aliases ...string) graph.Network {
	kind := models.Transformer
	if d.UNet != nil {
		kind = models.Conv
	}
	return graph.Network{
		Name: name, Aliases: aliases, Kind: kind, Batch: 1, Size: graph.Sizes{Image: d.Image},
		Build: d.build, Finish: d.finish,
	}
}

func (d *Diffusion) build(g *graph.Graph, s graph.Sizes) {
	if s.Image%64 != 0 {
		g.Fail("the image has %d pixels, not a multiple of 64", s.Image)
		s.Image = 64
	}
	if g.Rank > 0 && len(g.Targets) == 0 {
		g.Targets = d.targets()
	}
	g.Targets = slices.Clone(g.Targets)
	for i, t := range g.Targets {
		if t == "to_out.0" { // it is the only layer of to_out
			g.Targets[i] = "to_out"
		}
	}
	latent := s.Image / pixelsOfLatent
	shape := []int64{d.channels(), latent, latent}
	text, pooled := d.prompts(g)
	var x int
	if d.VAE != nil {
		x = d.VAE.frozen(g, s.Image, d.WideVAE)
	} else {
		x = g.NewInput(0, shape...)
	}
	noisy := g.Plus("add_noise", x, g.Op(models.Copy, "noise", shape, x))
	var out int
	switch {
	case d.UNet != nil:
		out = d.UNet.build(g, noisy, text)
	case d.MMDiT != nil:
		out = d.MMDiT.build(g, noisy, text, pooled)
	default:
		out = d.Flux.build(g, noisy, text, pooled)
	}
	g.Loss("loss", out)
}

func (d *Diffusion) channels() int64 {
	if d.UNet != nil {
		return d.UNet.In
	}
	return 16
}

// prompts adds the encoded prompts and their pooled embedding.
func (d *Diffusion) prompts(g *graph.Graph) (text, pooled int) {
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
		return g.NewInput(0, tokens, width), g.NewInput(0, sum)
	}
	var encoded []int
	for i, e := range d.Text {
		encoded = append(encoded, e.frozen(g, fmt.Sprintf("text_encoder_%d", i+1)))
	}
	text = g.Op(models.Concat, "encoder_hidden_states", []int64{tokens, width}, encoded...)
	return text, g.NewInput(0, sum)
}

// targets returns the layers that get adapters in the library's scripts.
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

// finish sets the bits of frozen layers, and autocast with adapters.
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

// held keeps values alive until layer i, like variables of the program. It applies to
// frozen layers, because nothing else keeps values without a gradient.
func held(g *graph.Graph, i int, values ...int) {
	if g.Frozen != nil {
		g.Layers[i].Inputs = append(g.Layers[i].Inputs, values...)
	}
}
