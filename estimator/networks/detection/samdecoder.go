package detection

import (
	"fmt"
	"slices"

	"carma/configs/models"
	"carma/estimator/networks/graph"
)

// SAMDecoder makes masks from the features of an image and the tokens of prompts. In each
// layer the tokens attend to each other and to the image, then the image attends to the
// tokens.
type SAMDecoder struct {
	Width, Inner, Heads, Depth int64
	Activation                 string
	Narrow                     int64 // width of the attention between tokens and image
	Masks                      int64 // masks for each prompt, in addition to one
	// QualityInner and QualityDepth are the width and the number of layers of the part that
	// scores masks, which the loss does not use.
	QualityInner, QualityDepth int64
	// Scored is set if a token scores whether there is an object (SAM 2). The layers are
	// then blocks of checkpointing, and their perceptrons are as deep as there are layers.
	Scored bool
}

// masks makes the mask for the loss from side x side features. fine lists features with
// four times and twice that side, or is empty.
func (d *SAMDecoder) masks(g *graph.Graph, image, dense, positions, box int, side int64, fine []int) int {
	defer g.Module("mask_decoder")()
	area, all := side*side, d.Masks+1
	first := []int{g.Table("iou_token", 1, d.Width), g.Table("mask_tokens", all, d.Width)}
	rows := 1 + all + g.Shape(box)[0]
	if d.Scored {
		first = append(first, g.Table("obj_score_token", 1, d.Width))
		rows++
	}
	prompts := g.PerSample(g.Op(models.Concat, "tokens", []int64{rows, d.Width}, append(first, box)...))
	image = g.Op(models.Add, "add_dense", g.Shape(image), image, dense)
	keys := g.View("keys", g.CopyOf("repeat", image, d.Width, side, side), area, d.Width)
	positions = g.CopyOf("repeat_positions", positions, area, d.Width)
	queries := prompts
	for i := range d.Depth {
		queries, keys = d.layer(g, fmt.Sprintf("transformer.layers.%d", i), queries, keys, prompts, positions, i == 0)
	}
	queries = g.Plus("final_add", queries, d.toImage(g, "transformer.final_attn_token_to_image", queries, keys, prompts, positions))
	queries = g.LayerNorm("transformer.layer_norm_final_attn", queries)
	pixels := d.upscale(g, g.View("image", keys, d.Width, side, side), fine)
	var vectors []int
	for i := range all {
		x := g.View("mask_token", queries, 1, d.Width)
		vectors = append(vectors, d.perceptron(g, fmt.Sprintf("output_hypernetworks_mlps.%d", i), x, d.Width, d.Width/8, 3))
	}
	g.Unused(func() {
		d.perceptron(g, "iou_prediction_head", g.View("iou_token", queries, 1, d.Width), d.QualityInner, all, d.QualityDepth)
		if d.Scored {
			d.perceptron(g, "pred_obj_score_head", g.View("obj_score_token", queries, 1, d.Width), d.Width, 1, 3)
		}
	})
	x := g.Op(models.MatMul, "masks", []int64{all, 16 * area}, g.Concat("stack", vectors...), g.View("pixels", pixels, d.Width/8, 16*area))
	return g.View("mask", x, 1, 4*side, 4*side)
}

// layer adds one of the two-way layers. The first has no input to add to, and no
// positions of the tokens.
func (d *SAMDecoder) layer(g *graph.Graph, name string, queries, keys, prompts, positions int, first bool) (q, k int) {
	if d.Scored {
		defer g.StartBlock(name)()
	} else {
		defer g.Module(name)()
	}
	if first {
		queries = d.attention(g, "self_attn", queries, queries, queries, d.Width)
	} else {
		x := g.Plus("self_add_positions", queries, prompts)
		queries = g.Plus("self_add", queries, d.attention(g, "self_attn", x, x, queries, d.Width))
	}
	queries = g.LayerNorm("layer_norm1", queries)
	queries = g.Plus("cross_add", queries, d.toImage(g, "cross_attn_token_to_image", queries, keys, prompts, positions))
	queries = g.LayerNorm("layer_norm2", queries)
	queries = g.LayerNorm("layer_norm3", g.Plus("mlp_add", queries, d.feedForward(g, queries)))
	of, at := g.Plus("image_add_positions", queries, prompts), g.Plus("image_add_place", keys, positions)
	keys = g.Plus("image_add", keys, d.attention(g, "cross_attn_image_to_token", at, of, queries, d.Narrow))
	return queries, g.LayerNorm("layer_norm4", keys)
}

func (d *SAMDecoder) feedForward(g *graph.Graph, x int) int {
	if d.Scored {
		return d.perceptron(g, "mlp", x, d.Inner, d.Width, max(d.Depth, 2))
	}
	return g.Linear("mlp.lin2", g.Unary(d.Activation, "mlp.act", g.Linear("mlp.lin1", x, d.Inner, true)), d.Width, true)
}

// toImage adds attention of the tokens to the image.
func (d *SAMDecoder) toImage(g *graph.Graph, name string, queries, keys, prompts, positions int) int {
	q, k := g.Plus(name+".add_positions", queries, prompts), g.Plus(name+".add_place", keys, positions)
	return d.attention(g, name, q, k, keys, d.Narrow)
}

func (d *SAMDecoder) attention(g *graph.Graph, name string, q, k, v int, width int64) int {
	defer g.Module(name)()
	q, k, v = g.Linear("q_proj", q, width, true), g.Linear("k_proj", k, width, true), g.Linear("v_proj", v, width, true)
	out := "out_proj"
	if d.Scored {
		out = "o_proj"
	}
	return g.Linear(out, g.Attend("sdpa", q, k, v, d.Heads), d.Width, true)
}

// upscale enlarges both sides of the image four times, with an eighth of the channels.
func (d *SAMDecoder) upscale(g *graph.Graph, x int, fine []int) int {
	x = doubled(g, "upscale_conv1", x, d.Width/4)
	if len(fine) == 2 {
		x = g.Plus("upscale_add1", x, g.CopyOf("repeat_fine1", fine[1], g.Shape(fine[1])...))
	}
	x = doubled(g, "upscale_conv2", g.Unary(models.GELU, "act1", g.LayerNorm2d("upscale_layer_norm", x)), d.Width/8)
	if len(fine) == 2 {
		x = g.Plus("upscale_add0", x, g.CopyOf("repeat_fine0", fine[0], g.Shape(fine[0])...))
	}
	return g.Unary(models.GELU, "act2", x)
}

// doubled adds a transposed convolution that doubles both sides.
func doubled(g *graph.Graph, name string, in int, out int64) int {
	s := g.Shape(in)
	return g.Add(models.Layer{
		Name: name, Type: models.ConvTranspose, Inputs: []int{in}, Out: []int64{out, 2 * s[1], 2 * s[2]},
		Params: []int64{s[0] * out * 2 * 2, out}, Kernel: []int64{2, 2}, Stride: 2,
	})
}

// perceptron has depth layers, with ReLUs between them.
func (d *SAMDecoder) perceptron(g *graph.Graph, name string, x int, inner, out, depth int64) int {
	defer g.Module(name)()
	sizes := append(slices.Repeat([]int64{inner}, int(depth-1)), out)
	for i, n := range sizes {
		layer := fmt.Sprintf("layers.%d", i)
		switch {
		case d.Scored && i == 0:
			layer = "proj_in"
		case d.Scored && i == len(sizes)-1:
			layer = "proj_out"
		case d.Scored:
			layer = fmt.Sprintf("layers.%d", i-1)
		}
		x = g.Linear(layer, x, n, true)
		if i < len(sizes)-1 {
			x = g.Unary(models.ReLU, "activation", x)
		}
	}
	return x
}
