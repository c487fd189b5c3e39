package detection

import (
	"fmt"

	"carma/configs/models"
	"carma/estimator/networks/graph"
	"carma/estimator/networks/vision"
)

// DETR finds objects by learned queries over the features of a convolutional network
// (arXiv 2005.12872), as built by the transformers library. All batch norms are fixed.
type DETR struct {
	Name           string
	Width, Queries int64
	Encoder        QueryLayers
	Decoder        QueryLayers
	Activation     string
	Dropout        bool
	InnerDrop      bool // dropout between the projections of the feed-forward part
	Learned        bool // positions come from a table for each direction, otherwise from sines
	EachLayer      bool // the loss uses the output of each decoder layer
	Backbone       Backbone
	Channels       int64

	Head    string
	Classes int64

	one, cast bool // one: each GPU has one image; cast: the training uses autocast
}

// QueryLayers are the sizes of an encoder or a decoder.
type QueryLayers struct{ Depth, Heads, Inner int64 }

// Backbone is the convolutional network, from the timm library or from the transformers
// library. The latter is frozen, as in the library's DETR.
type Backbone struct {
	Name   string                // name in the timm library, otherwise Own
	Own    *vision.ResNetEncoder // only its last stage is used
	Dilate bool                  // the last stage does not halve the image
}

// Trunks lists the names that [Backbone] may have: the timm library's residual networks
// with torchvision's structure.
func Trunks() []string { return []string{"resnet18", "resnet34", "resnet50", "resnet101", "resnet152"} }

// detrImage is the default side of images in pixels. The library scales the shorter side
// to 800 pixels, and combines a batch's images into one tensor. COCO's photos, 4 to 3,
// some of them upright, need a square of 1066 pixels.
const detrImage = 1066

// Config returns the training of the model, by default with a batch of 1.
func (d *DETR) Config(o models.Overrides) (*models.Config, error) {
	e := graph.Network{Name: d.Name, Kind: models.Detection, Batch: 1, Size: graph.Sizes{Image: detrImage, Classes: d.Classes}, Build: d.build}
	d.one, d.cast = max(o.Batch, 1) <= max(o.GPUs, 1), o.Precision == models.AMP
	return e.Config("", o)
}

// build makes the network. A photo may be padded to the size of a larger one; a number
// for each pixel marks the padding.
func (d *DETR) build(g *graph.Graph, s graph.Sizes) {
	g.Input(0, d.Channels, s.Image, s.Image)
	g.Input(8, s.Image, s.Image)
	if d.Head == graph.Segmentation {
		g.Input(1, maskObjects, s.Image, s.Image)
	}
	features := d.Backbone.features(g)
	top := features[len(features)-1]
	size := g.Shape(top)
	tokens := size[1] * size[2]
	image := g.Conv("input_projection", top, graph.Window{Out: d.Width, Bias: true})
	x := g.View("flatten", image, tokens, d.Width)
	positions := d.positions(g, size[1], size[2])
	x = g.DropIf(d.Dropout, "encoder.dropout", x)
	for i := range d.Encoder.Depth {
		x = d.encode(g, fmt.Sprintf("encoder.layers.%d", i), x, positions)
	}
	queries := repeated(g, "query_position_embeddings", d.Queries, d.Width)
	y := constant(g, "queries", d.Queries, d.Width) // zeros
	var each []int
	for i := range d.Decoder.Depth {
		y = d.decode(g, fmt.Sprintf("decoder.layers.%d", i), y, queries, x, positions)
		if d.EachLayer {
			y = d.lastNorm(g, y, i > 0)
			each = append(each, y)
		}
	}
	y = d.lastNorm(g, y, d.EachLayer)
	if d.Head == graph.Segmentation {
		maskLosses(g, d.masks(g, y, x, image, features), s.Image)
	}
	d.answer(g, y, s.Classes, false)
	for _, y := range each[:max(len(each)-1, 0)] {
		d.answer(g, y, s.Classes, true)
	}
}

// constant adds numbers for each sample that need no gradient.
func constant(g *graph.Graph, name string, shape ...int64) int {
	return g.Op(models.OtherLayer, name, shape, graph.Data)
}

// lastNorm adds the norm after the decoder or, with a loss for each layer, after each
// layer.
func (d *DETR) lastNorm(g *graph.Graph, y int, again bool) int {
	i := g.LayerNorm("decoder.layernorm", y)
	g.Layers[i].Tied = again
	return i
}

// features adds a backbone with fixed norms and returns the outputs of its stages. It is
// not checkpointed.
func (b *Backbone) features(g *graph.Graph) []int {
	from := len(g.Layers)
	leave := g.Module("backbone.model")
	var features []int
	if b.Own != nil {
		g.Fixed = true
		features = b.Own.Stages(g)[1:]
		g.Fixed = false
		g.Untrained(from)
	} else {
		use := vision.Trunk{Fixed: true}
		if b.Dilate {
			use.Dilated = 1
		}
		stages := vision.ResNet(g, graph.Data, b.Name, use)
		features = stages[1:]
	}
	leave()
	g.Unblocked(from)
	return features
}

// positions adds numbers for each position of the features. Sines need no gradient.
func (d *DETR) positions(g *graph.Graph, rows, columns int64) int {
	if !d.Learned {
		return constant(g, "position_embedding", rows*columns, d.Width)
	}
	const most = 50 // rows and columns of features for which the library has positions
	if max(rows, columns) > most {
		g.Fail("features of %d x %d have more than the %d learned positions; take a smaller image", rows, columns, most)
	}
	defer g.Module("position_embedding")()
	x := g.Positions("column_embeddings", most, columns, d.Width/2)
	y := g.Positions("row_embeddings", most, rows, d.Width/2)
	both := g.Op(models.Concat, "cat", []int64{rows * columns, d.Width}, x, y)
	return g.PerSample(g.CopyOf("repeat", both, rows*columns, d.Width))
}

// repeated adds a table of rows, copied for each sample.
func repeated(g *graph.Graph, name string, rows, width int64) int {
	return g.PerSample(g.CopyOf("repeat", g.Table(name, rows, width), rows, width))
}

// encode adds one layer of the encoder. Positions are added to queries and keys.
func (d *DETR) encode(g *graph.Graph, name string, x, positions int) int {
	defer g.StartBlock(name)()
	at := g.Plus("self_attn.add", x, positions)
	x = d.sum(g, "self_attn_layer_norm", x, d.attention(g, "self_attn", at, at, x, d.Encoder.Heads))
	return d.sum(g, "final_layer_norm", x, d.feedForward(g, x, d.Encoder.Inner))
}

// decode adds one layer of the decoder, whose queries attend to each other and to the
// image.
func (d *DETR) decode(g *graph.Graph, name string, y, queries, image, positions int) int {
	defer g.StartBlock(name)()
	at := g.Plus("self_attn.add", y, queries)
	y = d.sum(g, "self_attn_layer_norm", y, d.attention(g, "self_attn", at, at, y, d.Decoder.Heads))
	at, key := g.Plus("encoder_attn.add", y, queries), g.Plus("encoder_attn.add_key", image, positions)
	y = d.sum(g, "encoder_attn_layer_norm", y, d.attention(g, "encoder_attn", at, key, image, d.Decoder.Heads))
	return d.sum(g, "final_layer_norm", y, d.feedForward(g, y, d.Decoder.Inner))
}

// sum adds a part's output to its input, and a norm.
func (d *DETR) sum(g *graph.Graph, norm string, in, x int) int {
	return g.LayerNorm(norm, g.Plus("add", in, g.DropIf(d.Dropout, "dropout", x)))
}

func (d *DETR) attention(g *graph.Graph, name string, query, key, value int, heads int64) int {
	defer g.Module(name)()
	q, k, v := g.Adapted("q_proj", query, d.Width, true), g.Linear("k_proj", key, d.Width, true), g.Adapted("v_proj", value, d.Width, true)
	return g.Linear("o_proj", g.Attend("sdpa", q, k, v, heads), d.Width, true)
}

func (d *DETR) feedForward(g *graph.Graph, x int, inner int64) int {
	defer g.Module("mlp")()
	x = g.Unary(d.Activation, "activation_fn", g.Linear("fc1", x, inner, true))
	return g.Linear("fc2", g.DropIf(d.InnerDrop, "activation_dropout", x), d.Width, true)
}

// answer adds a class and a box for each query, with their losses. again is set if its
// weights are already counted.
func (d *DETR) answer(g *graph.Graph, y int, classes int64, again bool) {
	from := len(g.Layers)
	g.Trained(func() {
		logits := g.Plain("class_labels_classifier", y, classes+1, true)
		for i, n := range []int64{d.Width, d.Width, 4} {
			y = g.Plain(fmt.Sprintf("bbox_predictor.layers.%d", i), y, n, true)
			if i < 2 {
				y = g.Unary(models.ReLU, "relu", y)
			}
		}
		boxes := g.Unary(models.Sigmoid, "pred_boxes", y)
		g.Loss("loss_bbox", boxes)
		g.CrossEntropy("loss_ce", logits, graph.Second)
	})
	if again {
		shared(g, 1, from)
	}
}
