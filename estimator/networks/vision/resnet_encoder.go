package vision

import (
	"fmt"

	"carma/configs/models"
	"carma/estimator/networks/graph"
)

// ResNetEncoder is a residual network as built by the transformers library: activations
// are not in place.
type ResNetEncoder struct {
	Name           string
	Depths, Widths []int64 // of each stage
	Stem, Channels int64
	Image          int64
	Activation     string
	Bottleneck     bool // blocks have three convolutions, the second with a quarter of the channels
	FirstHalves    bool // the first stage also halves the image
	EarlyHalves    bool // a bottleneck's first convolution halves the image, otherwise the second

	Head    string
	Classes int64
}

// Config returns the training of an encoder with its head, by default with a batch of 1.
func (r *ResNetEncoder) Config(o models.Overrides) (*models.Config, error) {
	return graph.Network{Name: r.Name, Kind: models.Conv, Batch: 1, Size: graph.Sizes{Image: r.Image}, Build: r.build}.Headed(r.Head, r.Classes).Config("", o)
}

func (r *ResNetEncoder) build(g *graph.Graph, s graph.Sizes) {
	g.Photo(r.Channels, s)
	stages := r.Stages(g)
	x := stages[len(stages)-1]
	if r.Head == graph.BaseModel {
		g.Loss("loss", g.Op(models.Mean, "mean", []int64{g.Shape(x)[0]}, x))
		return
	}
	x = g.Flatten(g.Mean("pooler", x))
	g.NewClasses("classifier.1", x, s)
}

// Stages adds the stages and returns the outputs of the stem and of each stage.
func (r *ResNetEncoder) Stages(g *graph.Graph) []int {
	x := r.unit(g, "embedder", graph.Data, graph.Window{Out: r.Stem, Kernel: 7, Stride: 2, Pad: 3})
	x = g.MaxPool("embedder.pooler", g.Unary(r.Activation, "embedder.activation", x), graph.Window{Kernel: 3, Stride: 2, Pad: 1})
	stages := []int{x}
	for stage, depth := range r.Depths {
		for i := range depth {
			stride := int64(1)
			if i == 0 && (stage > 0 || r.FirstHalves) {
				stride = 2
			}
			x = r.block(g, fmt.Sprintf("encoder.stages.%d.layers.%d", stage, i), x, r.Widths[stage], stride)
		}
		stages = append(stages, x)
	}
	return stages
}

// unit adds a convolution and its norm.
func (r *ResNetEncoder) unit(g *graph.Graph, name string, in int, w graph.Window) int {
	return g.ConvNorm(name+".convolution", name+".normalization", in, w)
}

func (r *ResNetEncoder) block(g *graph.Graph, name string, in int, out, stride int64) int {
	defer g.StartBlock(name)()
	windows := []graph.Window{{Out: out, Kernel: 3, Pad: 1, Stride: stride}, {Out: out, Kernel: 3, Pad: 1}}
	if r.Bottleneck {
		const reduction = 4
		narrow := max(out/reduction, 1)
		windows = []graph.Window{{Out: narrow}, {Out: narrow, Kernel: 3, Pad: 1, Stride: stride}, {Out: out}}
		if r.EarlyHalves {
			windows[0].Stride, windows[1].Stride = stride, 1
		}
	}
	x := in
	for i, w := range windows {
		if i > 0 {
			x = g.Unary(r.Activation, "activation", x)
		}
		x = r.unit(g, fmt.Sprintf("layer.%d", i), x, w)
	}
	if stride != 1 || g.Shape(in)[0] != out {
		in = r.unit(g, "shortcut", in, graph.Window{Out: out, Stride: stride})
	}
	return g.Unary(r.Activation, "activation", g.PlusInPlace("add", x, in))
}
