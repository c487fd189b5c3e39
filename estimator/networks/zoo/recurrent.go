package zoo

import (
	"slices"

	"carma/configs/models"
	"carma/estimator/networks/graph"
)

// recurrent is a network of one nn.LSTM or nn.GRU: a language model, or a classifier of a
// numeric series by its last step.
type recurrent struct {
	cell     models.Cell
	input    int64 // width of the table of tokens
	features int64 // numbers per step of a series, or 0 for tokens
	classes  int64
	dropout  bool
}

// recurrents returns networks of recurrent layers. The default sizes come from PyTorch's
// example word_language_model (WikiText-2 has 33,278 words).
func recurrents() graph.Group {
	c := graph.Group{Name: "recurrent", Description: "recurrent networks of any size (LSTM, GRU), of tokens or of a series"}
	for _, kind := range []string{"lstm", "gru"} {
		base := recurrent{cell: models.Cell{Kind: kind, Hidden: 200, Layers: 2}, input: 200, dropout: true}
		e := graph.Network{
			Name: kind, Kind: models.Other, Batch: 20, Size: graph.Sizes{Sequence: 35, Vocabulary: 33278}, Build: base.build, Finish: sayReserve,
			Values: map[string]int64{
				"input": 1 << 24, "hidden": 1 << 24, "layers": 256, "directions": 2, "features": 1 << 24, "classes": graph.MostClasses,
				"dropout": 99, "vocabulary": graph.MostClasses,
			},
			With: func(e *graph.Network, values map[string]int64) {
				size := base
				size.take(values)
				if e.Build = size.build; size.features > 0 {
					e.Size = graph.Sizes{Sequence: e.Size.Sequence, Classes: max(size.classes, 1)}
				} else if v, ok := values["vocabulary"]; ok {
					e.Size.Vocabulary = v
				}
			},
		}
		if kind == "lstm" {
			e.Values["projection"] = 1 << 24
		}
		c.Entries = append(c.Entries, e)
	}
	return c
}

// sayReserve adds a warning about the part of the estimate that was not measured; see
// [models.Cell.Reserve].
func sayReserve(c *models.Config) {
	c.Warnings = append(c.Warnings, "what cuDNN keeps of recurrent layers is inferred from one report of 2017, and was not measured")
}

// take sets the sizes given in a name. By default the input is as wide as the state, and
// there is no dropout.
func (r *recurrent) take(values map[string]int64) {
	take(values, map[string]*int64{
		"hidden": &r.cell.Hidden, "layers": &r.cell.Layers, "directions": &r.cell.Directions, "projection": &r.cell.Projection,
		"features": &r.features, "classes": &r.classes,
	})
	r.input = r.cell.Hidden
	take(values, map[string]*int64{"input": &r.input})
	r.dropout = values["dropout"] > 0
	if r.features > 0 && r.classes == 0 {
		r.classes = 1
	}
}

func (r recurrent) build(g *graph.Graph, s graph.Sizes) {
	if c := r.cell; c.Projection >= c.Hidden {
		g.Fail("a projection of %d is not less than the hidden width %d", c.Projection, c.Hidden)
		return
	}
	if r.features == 0 && r.classes > 0 {
		g.Fail("classes are of a series; say features too, or leave them out")
		return
	}
	r.cell.Dropout = r.dropout && r.cell.Layers > 1
	x := graph.Data
	if r.features > 0 {
		g.Input(0, s.Sequence, r.features)
		g.Input(8)
	} else {
		g.Text(s)
		x = g.DropIf(r.dropout, "drop", g.Embedding("encoder", graph.Data, s.Vocabulary, r.input))
	}
	x = recurrentLayer(g, "rnn", x, r.cell)
	if r.features > 0 {
		last := g.CopyOf("last", x, g.Last(x)) // a view, but its gradient has the size of all steps
		last = g.DropIf(r.dropout, "drop", last)
		g.NarrowCrossEntropy("loss", g.Linear("decoder", last, s.Classes, true), graph.Second)
		return
	}
	x = g.DropIf(r.dropout, "drop.1", x)
	g.NarrowCrossEntropy("loss", g.Linear("decoder", x, s.Vocabulary, true), graph.Second)
}

// recurrentLayer adds recurrent layers of a kind.
func recurrentLayer(g *graph.Graph, name string, in int, cell models.Cell) int {
	shape := slices.Clone(g.Shape(in))
	from := shape[len(shape)-1]
	shape[len(shape)-1] = cell.Width()
	return g.Add(models.Layer{Name: name, Type: models.Recurrent, Inputs: []int{in}, Out: shape, Params: cell.Params(from), Cell: &cell})
}
