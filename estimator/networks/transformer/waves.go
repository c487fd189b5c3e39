package transformer

import (
	"fmt"

	"carma/configs/models"
	"carma/estimator/networks/graph"
)

// WaveEncoder is a Transformer on a sound's samples, as built by the transformers
// library: convolutions over time, positions from a convolution, blocks, and a head
// (wav2vec 2).
type WaveEncoder struct {
	Name string
	Block
	Depth                   int64
	Channels, Kernel, Steps []int64 // of each convolution of the samples
	LayerNorms              bool    // a norm after each of these convolutions, otherwise one after the first, per channel
	ConvBias                bool
	ProjectionDrop          bool
	PositionKernel, Groups  int64 // of the convolution for positions
	SpecEmbed               bool  // a learned vector for masked tokens

	Head                string
	Vocabulary, Classes int64
	ClassWidth          int64 // width of the layer before the classes
	FinalDrop           bool
}

// wave is the default length of a sound: ten seconds at 16,000 samples a second.
const wave = 160_000

// Config returns the training of an encoder with its head, by default with one sound of
// ten seconds.
func (w *WaveEncoder) Config(o models.Overrides) (*models.Config, error) {
	return graph.Network{Name: w.Name, Kind: models.Transformer, Batch: 1, Size: graph.Sizes{Sequence: wave}, Build: w.build}.Headed(w.Head, w.Classes).Config("", o)
}

func (w *WaveEncoder) build(g *graph.Graph, s graph.Sizes) {
	g.Input(0, 1, 1, s.Sequence)
	g.Input(8, 1)
	x := w.features(g, graph.Data)
	x = w.positions(g, x)
	for i := range w.Depth {
		x = w.block(g, fmt.Sprintf("encoder.layers.%d", i), x, i)
	}
	if !w.SumNorm {
		x = w.Norm(g, "encoder.layer_norm", x)
	}
	switch {
	case w.Head == graph.CTC:
		x = g.Plain("lm_head", g.DropIf(w.FinalDrop, "dropout", x), w.Vocabulary, true)
		g.Loss("loss", g.Unary(models.LogSoftmax, "log_softmax", x))
	case graph.HasClasses(w.Head):
		x = g.Op(models.Mean, "mean", []int64{w.ClassWidth}, g.Linear("projector", x, w.ClassWidth, true))
		g.NewClasses("classifier", x, s)
	default:
		g.Loss("loss", g.Op(models.Mean, "mean", []int64{w.Width}, x))
	}
}

// features adds the convolutions of the samples and the projection to tokens.
func (w *WaveEncoder) features(g *graph.Graph, x int) int {
	defer g.Module("feature_extractor")()
	for i, channels := range w.Channels {
		leave := g.StartBlock(fmt.Sprintf("conv_layers.%d", i))
		x = g.Conv("conv", x, graph.Window{Out: channels, Kernel: 1, Width: w.Kernel[i], Stride: w.Steps[i], Bias: w.ConvBias})
		shape := g.Shape(x)
		switch {
		case w.LayerNorms: // a norm over the channels, on a copy with the channels last
			x = g.LayerNorm("layer_norm", g.CopyOf("transpose", x, shape[2], channels))
			x = g.View("back", x, shape...)
		case i == 0:
			x = g.Add(models.Layer{
				Name: "layer_norm", Type: models.GroupNorm, Inputs: []int{x}, Out: shape, Params: []int64{channels, channels},
			})
		}
		x = g.Unary(w.Activation, "activation", x)
		leave()
	}
	shape := g.Shape(x)
	x = g.LayerNorm("feature_projection.layer_norm", g.CopyOf("transpose", x, shape[2], shape[0]))
	x = g.Linear("feature_projection.projection", x, w.Width, true)
	x = g.DropIf(w.ProjectionDrop, "feature_projection.dropout", x)
	if w.SpecEmbed {
		g.Table("masked_spec_embed", w.Width)
	}
	return x
}

// positions adds the output of a grouped convolution over the tokens. Its weight is
// computed from a direction, and a length for each position in the kernel.
func (w *WaveEncoder) positions(g *graph.Graph, x int) int {
	defer g.Module("encoder")()
	n := g.Shape(x)[0]
	c := g.Conv("pos_conv_embed.conv", g.View("channels", x, w.Width, 1, n), graph.Window{
		Out: w.Width, Kernel: 1, Width: w.PositionKernel, PadWidth: w.PositionKernel / 2, Groups: w.Groups, Bias: true,
	})
	g.Layers[c].Params = append(g.Layers[c].Params, w.PositionKernel)
	g.Layers[c].Keeps = &models.Keeps{Inputs: []int{0}, Whole: 4 * g.Layers[c].Params[0]}
	c = g.View("tokens", g.Unary(w.Activation, "pos_conv_embed.activation", c), n, w.Width)
	x = g.Plus("add", x, c)
	if w.SumNorm {
		x = w.Norm(g, "layer_norm", x)
	}
	return w.drop(g, "dropout", x)
}
