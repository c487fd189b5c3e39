package zoo

import (
	"fmt"

	"carma/configs/models"
)

// The heads of networks that find objects by learned queries; see [MaskedLM].
const (
	ObjectDetection = "object-detection"
	Segmentation    = "segmentation"
)

// DETR finds objects by learned queries over the features of a network of convolutions
// (arXiv 2005.12872), as the transformers library builds it. All batch norms are fixed.
type DETR struct {
	Name           string
	Width, Queries int64
	Encoder        QueryLayers
	Decoder        QueryLayers
	Activation     string
	Dropout        bool
	InnerDrop      bool // between the projections of the feed-forward part
	Learned        bool // a table of positions in each direction, else sines
	EachLayer      bool // the loss takes the output of each layer of the decoder
	Backbone       Backbone
	Channels       int64

	Head    string
	Classes int64

	one, cast bool // each GPU has one image; the training is under autocast
}

// QueryLayers are the sizes of an encoder or a decoder.
type QueryLayers struct{ Depth, Heads, Inner int64 }

// Backbone is the network of convolutions: of the timm library, or of the transformers
// library. The latter is frozen, as the library's DETR does with it.
type Backbone struct {
	Name   string         // in the timm library; else Own
	Own    *ResNetEncoder // the last of its stages counts
	Dilate bool           // the last stage does not halve the image
}

// timmTrunks are the residual networks of the timm library that are built as
// torchvision's.
var timmTrunks = map[string]resnet{
	"resnet18": {[4]int{2, 2, 2, 2}, false, 1, 64}, "resnet34": resnet34, "resnet50": resnet50, "resnet101": resnet101,
	"resnet152": {[4]int{3, 8, 36, 3}, true, 1, 64},
}

// Trunks lists the names that [Backbone] may have.
func Trunks() []string { return []string{"resnet18", "resnet34", "resnet50", "resnet101", "resnet152"} }

// detrImage is the default side of images in pixels: the library makes their shorter side
// 800 pixels, and puts those of a batch into one tensor. Photos of COCO, 4 to 3, some of
// them upright, need a square of 1066 pixels.
const detrImage = 1066

// Config is the training of the model, by default with a batch of 1.
func (d *DETR) Config(o models.Overrides) (*models.Config, error) {
	e := entry{name: d.Name, kind: models.Detection, batch: 1, size: settings{image: detrImage, classes: d.Classes}, build: d.build}
	d.one, d.cast = max(o.Batch, 1) <= max(o.GPUs, 1), o.Precision == models.AMP
	return e.config("", o)
}

// build makes the network. In a photo some pixels may be of another, larger one: a number
// for each pixel says so.
func (d *DETR) build(g *graph, s settings) {
	g.input(0, d.Channels, s.image, s.image)
	g.input(8, s.image, s.image)
	if d.Head == Segmentation {
		g.input(1, maskObjects, s.image, s.image)
	}
	features := d.Backbone.features(g)
	top := features[len(features)-1]
	size := g.shape(top)
	tokens := size[1] * size[2]
	image := g.conv("input_projection", top, window{out: d.Width, bias: true})
	x := g.view("flatten", image, tokens, d.Width)
	positions := d.positions(g, size[1], size[2])
	x = g.dropIf(d.Dropout, "encoder.dropout", x)
	for i := range d.Encoder.Depth {
		x = d.encode(g, fmt.Sprintf("encoder.layers.%d", i), x, positions)
	}
	queries := g.repeated("query_position_embeddings", d.Queries, d.Width)
	y := g.constant("queries", d.Queries, d.Width) // zeros
	var each []int
	for i := range d.Decoder.Depth {
		y = d.decode(g, fmt.Sprintf("decoder.layers.%d", i), y, queries, x, positions)
		if d.EachLayer {
			y = d.lastNorm(g, y, i > 0)
			each = append(each, y)
		}
	}
	y = d.lastNorm(g, y, d.EachLayer)
	if d.Head == Segmentation {
		g.maskLosses(d.masks(g, y, x, image, features), s.image)
	}
	d.answer(g, y, s.classes, false)
	for _, y := range each[:max(len(each)-1, 0)] {
		d.answer(g, y, s.classes, true)
	}
}

// constant are numbers for each sample that need no gradient.
func (g *graph) constant(name string, shape ...int64) int {
	return g.op(models.OtherLayer, name, shape, data)
}

// lastNorm is the norm after the decoder, or with the loss of each layer after each.
func (d *DETR) lastNorm(g *graph, y int, again bool) int {
	i := g.layerNorm("decoder.layernorm", y)
	g.layers[i].Tied = again
	return i
}

// features are the outputs of the stages of a backbone with fixed norms. It is not
// checkpointed.
func (b *Backbone) features(g *graph) []int {
	from := len(g.layers)
	leave := g.module("backbone.model")
	var features []int
	if b.Own != nil {
		g.fixed = true
		features = b.Own.stages(g)[1:]
		g.fixed = false
		g.untrained(from)
	} else {
		use := trunk{fixed: true}
		if b.Dilate {
			use.dilated = 1
		}
		stages := g.resnetAs(data, timmTrunks[b.Name], use)
		features = stages[1:]
	}
	leave()
	g.unblocked(from)
	return features
}

// unblocked makes the layers since from run once also with checkpointing.
func (g *graph) unblocked(from int) {
	for i := range g.layers[from:] {
		g.layers[from+i].Block = 0
	}
}

// positions are numbers for each place of the features. Sines need no gradient.
func (d *DETR) positions(g *graph, rows, columns int64) int {
	if !d.Learned {
		return g.constant("position_embedding", rows*columns, d.Width)
	}
	const most = 50 // rows and columns of features that the library has places for
	if max(rows, columns) > most {
		g.fail("features of %d x %d have more than the %d learned positions; take a smaller image", rows, columns, most)
	}
	defer g.module("position_embedding")()
	x := g.positions("column_embeddings", most, columns, d.Width/2)
	y := g.positions("row_embeddings", most, rows, d.Width/2)
	both := g.op(models.Concat, "cat", []int64{rows * columns, d.Width}, x, y)
	return g.perSample(g.copyOf("repeat", both, rows*columns, d.Width))
}

// repeated is a table of rows, once for each sample.
func (g *graph) repeated(name string, rows, width int64) int {
	return g.perSample(g.copyOf("repeat", g.table(name, rows, width), rows, width))
}

// encode is one layer of the encoder. Positions are added to queries and keys.
func (d *DETR) encode(g *graph, name string, x, positions int) int {
	defer g.startBlock(name)()
	at := g.plus("self_attn.add", x, positions)
	x = d.sum(g, "self_attn_layer_norm", x, d.attention(g, "self_attn", at, at, x, d.Encoder.Heads))
	return d.sum(g, "final_layer_norm", x, d.feedForward(g, x, d.Encoder.Inner))
}

// decode is one layer of the decoder, whose queries see each other and the image.
func (d *DETR) decode(g *graph, name string, y, queries, image, positions int) int {
	defer g.startBlock(name)()
	at := g.plus("self_attn.add", y, queries)
	y = d.sum(g, "self_attn_layer_norm", y, d.attention(g, "self_attn", at, at, y, d.Decoder.Heads))
	at, key := g.plus("encoder_attn.add", y, queries), g.plus("encoder_attn.add_key", image, positions)
	y = d.sum(g, "encoder_attn_layer_norm", y, d.attention(g, "encoder_attn", at, key, image, d.Decoder.Heads))
	return d.sum(g, "final_layer_norm", y, d.feedForward(g, y, d.Decoder.Inner))
}

// sum adds a part's output to its input, and norms that.
func (d *DETR) sum(g *graph, norm string, in, x int) int {
	return g.layerNorm(norm, g.plus("add", in, g.dropIf(d.Dropout, "dropout", x)))
}

func (d *DETR) attention(g *graph, name string, query, key, value int, heads int64) int {
	defer g.module(name)()
	q, k, v := g.adapted("q_proj", query, d.Width, true), g.linear("k_proj", key, d.Width, true), g.adapted("v_proj", value, d.Width, true)
	return g.linear("o_proj", g.attend("sdpa", q, k, v, heads), d.Width, true)
}

func (d *DETR) feedForward(g *graph, x int, inner int64) int {
	defer g.module("mlp")()
	x = g.unary(d.Activation, "activation_fn", g.linear("fc1", x, inner, true))
	return g.linear("fc2", g.dropIf(d.InnerDrop, "activation_dropout", x), d.Width, true)
}

// answer is a class and a box for each query, with their losses. again: its weights are
// counted already.
func (d *DETR) answer(g *graph, y int, classes int64, again bool) {
	from := len(g.layers)
	g.trained(func() {
		logits := g.plain("class_labels_classifier", y, classes+1, true)
		for i, n := range []int64{d.Width, d.Width, 4} {
			y = g.plain(fmt.Sprintf("bbox_predictor.layers.%d", i), y, n, true)
			if i < 2 {
				y = g.unary(models.ReLU, "relu", y)
			}
		}
		boxes := g.unary(models.Sigmoid, "pred_boxes", y)
		g.loss("loss_bbox", boxes)
		g.crossEntropy("loss_ce", logits, second)
	})
	if again {
		g.shared(1, from)
	}
}
