package zoo

import (
	"fmt"
	"slices"

	"carma/configs/models"
)

// SAMDecoder makes masks of the features of an image and the tokens of prompts. In each
// layer the tokens see each other and the image, and then the image sees the tokens.
type SAMDecoder struct {
	Width, Inner, Heads, Depth int64
	Activation                 string
	Narrow                     int64 // width of the attention between tokens and image
	Masks                      int64 // for each prompt, beside the one
	// QualityInner and QualityDepth are the width and the layers of the part that judges
	// masks, which the loss does not take.
	QualityInner, QualityDepth int64
	// Scored: a token says whether there is an object (SAM 2). The layers are blocks of
	// checkpointing then, and their perceptrons are as deep as there are layers.
	Scored bool
}

// masks makes the mask that the loss takes, from features of side x side numbers. fine
// are features of four times and twice that side, or none.
func (d *SAMDecoder) masks(g *graph, image, dense, positions, box int, side int64, fine []int) int {
	defer g.module("mask_decoder")()
	area, all := side*side, d.Masks+1
	first := []int{g.table("iou_token", 1, d.Width), g.table("mask_tokens", all, d.Width)}
	rows := 1 + all + g.shape(box)[0]
	if d.Scored {
		first = append(first, g.table("obj_score_token", 1, d.Width))
		rows++
	}
	prompts := g.perSample(g.op(models.Concat, "tokens", []int64{rows, d.Width}, append(first, box)...))
	image = g.op(models.Add, "add_dense", g.shape(image), image, dense)
	keys := g.view("keys", g.copyOf("repeat", image, d.Width, side, side), area, d.Width)
	positions = g.copyOf("repeat_positions", positions, area, d.Width)
	queries := prompts
	for i := range d.Depth {
		queries, keys = d.layer(g, fmt.Sprintf("transformer.layers.%d", i), queries, keys, prompts, positions, i == 0)
	}
	queries = g.plus("final_add", queries, d.toImage(g, "transformer.final_attn_token_to_image", queries, keys, prompts, positions))
	queries = g.layerNorm("transformer.layer_norm_final_attn", queries)
	pixels := d.upscale(g, g.view("image", keys, d.Width, side, side), fine)
	var vectors []int
	for i := range all {
		x := g.view("mask_token", queries, 1, d.Width)
		vectors = append(vectors, d.perceptron(g, fmt.Sprintf("output_hypernetworks_mlps.%d", i), x, d.Width, d.Width/8, 3))
	}
	g.unused(func() {
		d.perceptron(g, "iou_prediction_head", g.view("iou_token", queries, 1, d.Width), d.QualityInner, all, d.QualityDepth)
		if d.Scored {
			d.perceptron(g, "pred_obj_score_head", g.view("obj_score_token", queries, 1, d.Width), d.Width, 1, 3)
		}
	})
	x := g.op(models.MatMul, "masks", []int64{all, 16 * area}, g.concat("stack", vectors...), g.view("pixels", pixels, d.Width/8, 16*area))
	return g.view("mask", x, 1, 4*side, 4*side)
}

// layer is one of the two-way layers. The first has no input to add to, and no positions
// of the tokens.
func (d *SAMDecoder) layer(g *graph, name string, queries, keys, prompts, positions int, first bool) (q, k int) {
	if d.Scored {
		defer g.startBlock(name)()
	} else {
		defer g.module(name)()
	}
	if first {
		queries = d.attention(g, "self_attn", queries, queries, queries, d.Width)
	} else {
		x := g.plus("self_add_positions", queries, prompts)
		queries = g.plus("self_add", queries, d.attention(g, "self_attn", x, x, queries, d.Width))
	}
	queries = g.layerNorm("layer_norm1", queries)
	queries = g.plus("cross_add", queries, d.toImage(g, "cross_attn_token_to_image", queries, keys, prompts, positions))
	queries = g.layerNorm("layer_norm2", queries)
	queries = g.layerNorm("layer_norm3", g.plus("mlp_add", queries, d.feedForward(g, queries)))
	of, at := g.plus("image_add_positions", queries, prompts), g.plus("image_add_place", keys, positions)
	keys = g.plus("image_add", keys, d.attention(g, "cross_attn_image_to_token", at, of, queries, d.Narrow))
	return queries, g.layerNorm("layer_norm4", keys)
}

func (d *SAMDecoder) feedForward(g *graph, x int) int {
	if d.Scored {
		return d.perceptron(g, "mlp", x, d.Inner, d.Width, max(d.Depth, 2))
	}
	return g.linear("mlp.lin2", g.unary(d.Activation, "mlp.act", g.linear("mlp.lin1", x, d.Inner, true)), d.Width, true)
}

// toImage is attention of the tokens to the image.
func (d *SAMDecoder) toImage(g *graph, name string, queries, keys, prompts, positions int) int {
	q, k := g.plus(name+".add_positions", queries, prompts), g.plus(name+".add_place", keys, positions)
	return d.attention(g, name, q, k, keys, d.Narrow)
}

func (d *SAMDecoder) attention(g *graph, name string, q, k, v int, width int64) int {
	defer g.module(name)()
	q, k, v = g.linear("q_proj", q, width, true), g.linear("k_proj", k, width, true), g.linear("v_proj", v, width, true)
	out := "out_proj"
	if d.Scored {
		out = "o_proj"
	}
	return g.linear(out, g.attend("sdpa", q, k, v, d.Heads), d.Width, true)
}

// upscale makes the image four times as large on each side, with an eighth of the
// channels.
func (d *SAMDecoder) upscale(g *graph, x int, fine []int) int {
	x = g.doubled("upscale_conv1", x, d.Width/4)
	if len(fine) == 2 {
		x = g.plus("upscale_add1", x, g.copyOf("repeat_fine1", fine[1], g.shape(fine[1])...))
	}
	x = g.doubled("upscale_conv2", g.unary(models.GELU, "act1", g.layerNorm2d("upscale_layer_norm", x)), d.Width/8)
	if len(fine) == 2 {
		x = g.plus("upscale_add0", x, g.copyOf("repeat_fine0", fine[0], g.shape(fine[0])...))
	}
	return g.unary(models.GELU, "act2", x)
}

// doubled is a transposed convolution that doubles both sides.
func (g *graph) doubled(name string, in int, out int64) int {
	s := g.shape(in)
	return g.add(models.Layer{
		Name: name, Type: models.ConvTranspose, Inputs: []int{in}, Out: []int64{out, 2 * s[1], 2 * s[2]},
		Params: []int64{s[0] * out * 2 * 2, out}, Kernel: []int64{2, 2}, Stride: 2,
	})
}

// perceptron has so many layers, with ReLUs between them.
func (d *SAMDecoder) perceptron(g *graph, name string, x int, inner, out, depth int64) int {
	defer g.module(name)()
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
		x = g.linear(layer, x, n, true)
		if i < len(sizes)-1 {
			x = g.unary(models.ReLU, "activation", x)
		}
	}
	return x
}
