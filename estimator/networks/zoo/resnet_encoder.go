package zoo

import (
	"fmt"

	"carma/configs/models"
)

// ResNetEncoder is a residual network as the transformers library builds it:
// activations are not in place.
type ResNetEncoder struct {
	Name           string
	Depths, Widths []int64 // of each stage
	Stem, Channels int64
	Image          int64
	Activation     string
	Bottleneck     bool // blocks of three convolutions, the second of them with a quarter of the channels
	FirstHalves    bool // the first stage halves the image too
	EarlyHalves    bool // a bottleneck's first convolution halves it, else the second

	Head    string
	Classes int64
}

// Config is the training of an encoder with its head, by default with a batch of 1.
func (r *ResNetEncoder) Config(o models.Overrides) (*models.Config, error) {
	return entry{name: r.Name, kind: models.Conv, batch: 1, size: settings{image: r.Image}, build: r.build}.headed(r.Head, r.Classes).config("", o)
}

func (r *ResNetEncoder) build(g *graph, s settings) {
	g.photo(r.Channels, s)
	stages := r.stages(g)
	x := stages[len(stages)-1]
	if r.Head == BaseModel {
		g.loss("loss", g.op(models.Mean, "mean", []int64{g.shape(x)[0]}, x))
		return
	}
	x = g.flatten(g.mean("pooler", x))
	g.newClasses("classifier.1", x, s)
}

// stages are the outputs of the stem and of each stage.
func (r *ResNetEncoder) stages(g *graph) []int {
	x := r.unit(g, "embedder", data, window{out: r.Stem, kernel: 7, stride: 2, pad: 3})
	x = g.maxPool("embedder.pooler", g.unary(r.Activation, "embedder.activation", x), window{kernel: 3, stride: 2, pad: 1})
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

// unit is a convolution and its norm.
func (r *ResNetEncoder) unit(g *graph, name string, in int, w window) int {
	return g.convNorm(name+".convolution", name+".normalization", in, w)
}

func (r *ResNetEncoder) block(g *graph, name string, in int, out, stride int64) int {
	defer g.startBlock(name)()
	windows := []window{{out: out, kernel: 3, pad: 1, stride: stride}, {out: out, kernel: 3, pad: 1}}
	if r.Bottleneck {
		const reduction = 4
		narrow := max(out/reduction, 1)
		windows = []window{{out: narrow}, {out: narrow, kernel: 3, pad: 1, stride: stride}, {out: out}}
		if r.EarlyHalves {
			windows[0].stride, windows[1].stride = stride, 1
		}
	}
	x := in
	for i, w := range windows {
		if i > 0 {
			x = g.unary(r.Activation, "activation", x)
		}
		x = r.unit(g, fmt.Sprintf("layer.%d", i), x, w)
	}
	if stride != 1 || g.shape(in)[0] != out {
		in = r.unit(g, "shortcut", in, window{out: out, stride: stride})
	}
	return g.unary(r.Activation, "activation", g.plusInPlace("add", x, in))
}
