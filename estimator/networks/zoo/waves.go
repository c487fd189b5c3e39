package zoo

import (
	"fmt"

	"carma/configs/models"
)

// CTC is the head of models that write down speech, by the connectionist temporal
// classification; see [MaskedLM].
const CTC = "ctc"

// WaveEncoder is a Transformer of a sound's samples, as the transformers library builds
// it: convolutions over time, positions by a convolution, blocks, and a head (wav2vec 2).
type WaveEncoder struct {
	Name string
	Block
	Depth                   int64
	Channels, Kernel, Steps []int64 // of each convolution of the samples
	LayerNorms              bool    // a norm after each of these; else one after the first, by channel
	ConvBias                bool
	ProjectionDrop          bool
	PositionKernel, Groups  int64 // of the convolution of positions
	SpecEmbed               bool  // a learned vector for what is masked

	Head                string
	Vocabulary, Classes int64
	ClassWidth          int64 // of the layer before the classes
	FinalDrop           bool
}

// wave is the default length of a sound: ten seconds at 16,000 samples a second.
const wave = 160_000

// Config is the training of an encoder with its head, by default with one sound of ten
// seconds.
func (w *WaveEncoder) Config(o models.Overrides) (*models.Config, error) {
	return entry{name: w.Name, kind: models.Transformer, batch: 1, size: settings{sequence: wave}, build: w.build}.headed(w.Head, w.Classes).config("", o)
}

func (w *WaveEncoder) build(g *graph, s settings) {
	g.input(0, 1, 1, s.sequence)
	g.input(8, 1)
	x := w.features(g, data)
	x = w.positions(g, x)
	for i := range w.Depth {
		x = w.block(g, fmt.Sprintf("encoder.layers.%d", i), x, i)
	}
	if !w.SumNorm {
		x = w.norm(g, "encoder.layer_norm", x)
	}
	switch {
	case w.Head == CTC:
		x = g.plain("lm_head", g.dropIf(w.FinalDrop, "dropout", x), w.Vocabulary, true)
		g.loss("loss", g.unary(models.LogSoftmax, "log_softmax", x))
	case HasClasses(w.Head):
		x = g.op(models.Mean, "mean", []int64{w.ClassWidth}, g.linear("projector", x, w.ClassWidth, true))
		g.newClasses("classifier", x, s)
	default:
		g.loss("loss", g.op(models.Mean, "mean", []int64{w.Width}, x))
	}
}

// features are the convolutions of the samples and the projection to tokens.
func (w *WaveEncoder) features(g *graph, x int) int {
	defer g.module("feature_extractor")()
	for i, channels := range w.Channels {
		leave := g.startBlock(fmt.Sprintf("conv_layers.%d", i))
		x = g.conv("conv", x, window{out: channels, kernel: 1, width: w.Kernel[i], stride: w.Steps[i], bias: w.ConvBias})
		shape := g.shape(x)
		switch {
		case w.LayerNorms: // over the channels, of a copy with these last
			x = g.layerNorm("layer_norm", g.copyOf("transpose", x, shape[2], channels))
			x = g.view("back", x, shape...)
		case i == 0:
			x = g.add(models.Layer{
				Name: "layer_norm", Type: models.GroupNorm, Inputs: []int{x}, Out: shape, Params: []int64{channels, channels},
			})
		}
		x = g.unary(w.Activation, "activation", x)
		leave()
	}
	shape := g.shape(x)
	x = g.layerNorm("feature_projection.layer_norm", g.copyOf("transpose", x, shape[2], shape[0]))
	x = g.linear("feature_projection.projection", x, w.Width, true)
	x = g.dropIf(w.ProjectionDrop, "feature_projection.dropout", x)
	if w.SpecEmbed {
		g.table("masked_spec_embed", w.Width)
	}
	return x
}

// positions adds the output of a grouped convolution over the tokens. Its weight is made
// of a direction and a length for each place in the kernel.
func (w *WaveEncoder) positions(g *graph, x int) int {
	defer g.module("encoder")()
	n := g.shape(x)[0]
	c := g.conv("pos_conv_embed.conv", g.view("channels", x, w.Width, 1, n), window{
		out: w.Width, kernel: 1, width: w.PositionKernel, padWidth: w.PositionKernel / 2, groups: w.Groups, bias: true,
	})
	g.layers[c].Params = append(g.layers[c].Params, w.PositionKernel)
	g.layers[c].Keeps = &models.Keeps{Inputs: []int{0}, Whole: 4 * g.layers[c].Params[0]}
	c = g.view("tokens", g.unary(w.Activation, "pos_conv_embed.activation", c), n, w.Width)
	x = g.plus("add", x, c)
	if w.SumNorm {
		x = w.norm(g, "layer_norm", x)
	}
	return w.drop(g, "dropout", x)
}
