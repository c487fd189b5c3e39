package detection

import (
	"fmt"

	"carma/configs/models"
	"carma/estimator/networks/graph"
)

// decode makes masks from the queries, before the first layer of the decoder and after
// each layer. tokens lists the queries from which each mask is made.
func (m *Mask2Former) decode(g *graph.Graph, levels []int, pixels int) (masks, tokens []int) {
	defer g.Module("transformer_module")()
	queries, x := repeated(g, "queries_embedder", m.Queries, m.Width), repeated(g, "queries_features", m.Queries, m.Width)
	table := g.Table("level_embed", maskLevels, m.Width)
	var features, places []int
	for i, level := range levels {
		s := g.Shape(level)
		if s[0] != m.Width || m.Projected {
			level = g.Conv(fmt.Sprintf("input_projections.%d", i), level, graph.Window{Out: m.Width, Bias: true})
		}
		n := s[1] * s[2]
		features = append(features, g.Op(models.Add, "level", []int64{n, m.Width}, level, table))
		places = append(places, constant(g, "position_embedder", n, m.Width))
	}
	defer g.Module("decoder")()
	for i := range m.Decoder.Depth {
		first := len(g.Layers)
		y := g.LayerNorm("layernorm", x)
		mask := g.Op(models.MatMul, "mask", []int64{m.Queries, g.Shape(pixels)[1], g.Shape(pixels)[2]}, maskEmbedder(g, "mask_predictor.mask_embedder", y, m.Width, m.MaskWidth), pixels)
		shared(g, int(i), first)
		masks, tokens = append(masks, mask), append(tokens, y)
		if i < m.Decoder.Depth-1 {
			level := i % maskLevels
			x = m.layer(g, fmt.Sprintf("layers.%d", i), x, queries, features[level], places[level])
		}
	}
	return masks, tokens
}

// maskEmbedder adds three layers that compute from each query the vector with which its
// mask is multiplied.
func maskEmbedder(g *graph.Graph, name string, y int, width, out int64) int {
	defer g.Module(name)()
	for i, n := range []int64{width, width, out} {
		y = g.Plain(fmt.Sprintf("%d.0", i), y, n, true)
		if i < 2 {
			y = g.Unary(models.ReLU, fmt.Sprintf("%d.1", i), y)
		}
	}
	return y
}

// layer adds a layer of the decoder. Queries attend to the image within their masks, then
// to each other.
func (m *Mask2Former) layer(g *graph.Graph, name string, x, queries, image, places int) int {
	defer g.StartBlock(name)()
	part := func(norm string, run func(y int) int) {
		if m.NormFirst {
			x = g.Plus("add", x, g.DropIf(m.Dropout, "dropout", run(g.LayerNorm(norm, x))))
			return
		}
		x = m.sum(g, norm, x, run(x))
	}
	part("cross_attn_layer_norm", func(y int) int {
		key := g.Plus("add_key", image, places)
		return m.attend(g, "cross_attn", g.Plus("add_query", y, queries), key, g.CopyOf("value", image, g.Shape(image)...), true)
	})
	part("self_attn_layer_norm", func(y int) int {
		at := g.Plus("add_self", y, queries)
		return m.attend(g, "self_attn", at, at, y, false)
	})
	part("final_layer_norm", func(y int) int {
		y = g.DropIf(m.Dropout, "dropout", g.Unary(m.Activation, "activation_fn", g.Linear("fc1", y, m.Decoder.Inner, true)))
		return g.Linear("fc2", y, m.Width, true)
	})
	return x
}

// attend adds attention in single operations. A mask has the size of the scores.
func (m *Mask2Former) attend(g *graph.Graph, name string, query, key, value int, masked bool) int {
	defer g.Module(name)()
	n, of := g.Shape(query)[0], g.Shape(key)[0]
	q := g.Scale("scale", g.Adapted("q_proj", query, m.Width, true))
	k, v := g.Linear("k_proj", key, m.Width, true), g.Adapted("v_proj", value, m.Width, true)
	factors := []int{q, k}
	if masked {
		factors = append(factors, constant(g, "mask", m.Decoder.Heads, n, of))
	}
	scores := g.Op(models.MatMul, "scores", []int64{m.Decoder.Heads, n, of}, factors...)
	g.Keeping(scores, models.Keeps{Inputs: []int{0, 1}})
	x := g.Op(models.MatMul, "weighted", []int64{n, m.Width}, g.Unary(models.Softmax, "softmax", scores), v)
	return g.Linear("out_proj", x, m.Width, true)
}

// losses compares each mask with the objects at randomly drawn points. The library first
// finds the query for each object, image by image, at the same number of points.
func (m *Mask2Former) losses(g *graph.Graph, masks, tokens []int, s graph.Sizes) {
	classes := make([]int, len(tokens))
	for i, y := range tokens {
		first := len(g.Layers)
		g.Trained(func() { classes[i] = g.Plain("class_predictor", y, s.Classes+1, true) })
		shared(g, i, first)
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
		g.CrossEntropy("loss_cross_entropy", classes[i], graph.Second)
	}
	g.Layers[loss].Holds = masks // the masks exist until the model returns
	g.Total(len(g.Layers) - 1)
}

// loss adds the loss of one prediction: for each object a mask, its points and a class.
func (m *Mask2Former) loss(g *graph.Graph, mask int, s graph.Sizes) int {
	// While costs are computed, the points and five numbers for each exist.
	costs := constant(g, "costs", 6, m.Queries, m.Points)
	g.Layers[costs].Whole = true
	// The target masks, concatenated, and again in the order of the queries; the oversampled
	// points and their values.
	targets := constant(g, "targets", maskObjects, 2*s.Image*s.Image+5*m.PointsSampled)
	area := g.Shape(mask)[1] * g.Shape(mask)[2]
	kept := 4 * maskObjects * (area + 5*m.Points)
	return g.Keeping(g.Loss("loss_mask", mask, targets), models.Keeps{Bytes: kept})
}
