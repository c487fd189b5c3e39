package zoo

import (
	"fmt"

	"carma/configs/models"
)

// decode makes masks of the queries, before the first layer of the decoder and after
// each. tokens are the queries that each mask is made of.
func (m *Mask2Former) decode(g *graph, levels []int, pixels int) (masks, tokens []int) {
	defer g.module("transformer_module")()
	queries, x := g.repeated("queries_embedder", m.Queries, m.Width), g.repeated("queries_features", m.Queries, m.Width)
	table := g.table("level_embed", maskLevels, m.Width)
	var features, places []int
	for i, level := range levels {
		s := g.shape(level)
		if s[0] != m.Width || m.Projected {
			level = g.conv(fmt.Sprintf("input_projections.%d", i), level, window{out: m.Width, bias: true})
		}
		n := s[1] * s[2]
		features = append(features, g.op(models.Add, "level", []int64{n, m.Width}, level, table))
		places = append(places, g.constant("position_embedder", n, m.Width))
	}
	defer g.module("decoder")()
	for i := range m.Decoder.Depth {
		first := len(g.layers)
		y := g.layerNorm("layernorm", x)
		mask := g.op(models.MatMul, "mask", []int64{m.Queries, g.shape(pixels)[1], g.shape(pixels)[2]}, g.maskEmbedder("mask_predictor.mask_embedder", y, m.Width, m.MaskWidth), pixels)
		g.shared(int(i), first)
		masks, tokens = append(masks, mask), append(tokens, y)
		if i < m.Decoder.Depth-1 {
			level := i % maskLevels
			x = m.layer(g, fmt.Sprintf("layers.%d", i), x, queries, features[level], places[level])
		}
	}
	return masks, tokens
}

// maskEmbedder is three layers that make of each query what its mask is multiplied with.
func (g *graph) maskEmbedder(name string, y int, width, out int64) int {
	defer g.module(name)()
	for i, n := range []int64{width, width, out} {
		y = g.plain(fmt.Sprintf("%d.0", i), y, n, true)
		if i < 2 {
			y = g.unary(models.ReLU, fmt.Sprintf("%d.1", i), y)
		}
	}
	return y
}

// layer is one of the decoder. Queries see the image within their masks, then each other.
func (m *Mask2Former) layer(g *graph, name string, x, queries, image, places int) int {
	defer g.startBlock(name)()
	part := func(norm string, run func(y int) int) {
		if m.NormFirst {
			x = g.plus("add", x, g.dropIf(m.Dropout, "dropout", run(g.layerNorm(norm, x))))
			return
		}
		x = m.sum(g, norm, x, run(x))
	}
	part("cross_attn_layer_norm", func(y int) int {
		key := g.plus("add_key", image, places)
		return m.attend(g, "cross_attn", g.plus("add_query", y, queries), key, g.copyOf("value", image, g.shape(image)...), true)
	})
	part("self_attn_layer_norm", func(y int) int {
		at := g.plus("add_self", y, queries)
		return m.attend(g, "self_attn", at, at, y, false)
	})
	part("final_layer_norm", func(y int) int {
		y = g.dropIf(m.Dropout, "dropout", g.unary(m.Activation, "activation_fn", g.linear("fc1", y, m.Decoder.Inner, true)))
		return g.linear("fc2", y, m.Width, true)
	})
	return x
}

// attend is attention in single operations. A mask is as large as the scores.
func (m *Mask2Former) attend(g *graph, name string, query, key, value int, masked bool) int {
	defer g.module(name)()
	n, of := g.shape(query)[0], g.shape(key)[0]
	q := g.scale("scale", g.adapted("q_proj", query, m.Width, true))
	k, v := g.linear("k_proj", key, m.Width, true), g.adapted("v_proj", value, m.Width, true)
	factors := []int{q, k}
	if masked {
		factors = append(factors, g.constant("mask", m.Decoder.Heads, n, of))
	}
	scores := g.op(models.MatMul, "scores", []int64{m.Decoder.Heads, n, of}, factors...)
	g.keeping(scores, models.Keeps{Inputs: []int{0, 1}})
	x := g.op(models.MatMul, "weighted", []int64{n, m.Width}, g.unary(models.Softmax, "softmax", scores), v)
	return g.linear("out_proj", x, m.Width, true)
}

// losses compare each mask with the objects at points drawn at random. The library first
// finds the query for each object, image by image, at the same number of points.
func (m *Mask2Former) losses(g *graph, masks, tokens []int, s settings) {
	classes := make([]int, len(tokens))
	for i, y := range tokens {
		first := len(g.layers)
		g.trained(func() { classes[i] = g.plain("class_predictor", y, s.classes+1, true) })
		g.shared(i, first)
	}
	last := len(masks) - 1
	order := []int{last}
	for i := range last {
		if m.EachLayer {
			order = append(order, i)
		}
	}
	var loss int
	for _, i := range order {
		loss = m.loss(g, masks[i], s)
		g.crossEntropy("loss_cross_entropy", classes[i], second)
	}
	g.layers[loss].Holds = masks // they are there until the model returns
	g.total(len(g.layers) - 1)
}

// loss is that of one prediction: for each object a mask, its points, and what is there.
func (m *Mask2Former) loss(g *graph, mask int, s settings) int {
	// While costs are computed there are the points and five numbers for each.
	costs := g.constant("costs", 6, m.Queries, m.Points)
	g.layers[costs].Whole = true
	// The masks to learn, put together and in the order of the queries; more points than
	// are taken, and what is there.
	targets := g.constant("targets", maskObjects, 2*s.image*s.image+5*m.PointsSampled)
	area := g.shape(mask)[1] * g.shape(mask)[2]
	kept := 4 * maskObjects * (area + 5*m.Points)
	return g.keeping(g.loss("loss_mask", mask, targets), models.Keeps{Bytes: kept})
}
