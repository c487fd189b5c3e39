package zoo

import (
	"slices"

	"carma/configs/models"
)

// recurrent is a network of one nn.LSTM or nn.GRU: a model of language, or of a series
// of numbers of which the last step is classified.
type recurrent struct {
	cell     models.Cell
	input    int64 // width of the table of tokens
	features int64 // numbers of each step of a series; 0: tokens
	classes  int64
	dropout  bool
}

// recurrents are networks of recurrent layers. By default they are those of PyTorch's
// example word_language_model (its sizes; WikiText-2 has 33,278 words).
func recurrents() group {
	c := group{name: "recurrent", description: "recurrent networks of any size (LSTM, GRU), of tokens or of a series"}
	for _, kind := range []string{"lstm", "gru"} {
		base := recurrent{cell: models.Cell{Kind: kind, Hidden: 200, Layers: 2}, input: 200, dropout: true}
		e := entry{
			name: kind, kind: models.Other, batch: 20, size: settings{sequence: 35, vocabulary: 33278}, build: base.build, finish: sayReserve,
			values: map[string]int64{
				"input": 1 << 24, "hidden": 1 << 24, "layers": 256, "directions": 2, "features": 1 << 24, "classes": mostClasses,
				"dropout": 99, "vocabulary": mostClasses,
			},
			with: func(e *entry, values map[string]int64) {
				size := base
				size.take(values)
				if e.build = size.build; size.features > 0 {
					e.size = settings{sequence: e.size.sequence, classes: max(size.classes, 1)}
				} else if v, ok := values["vocabulary"]; ok {
					e.size.vocabulary = v
				}
			},
		}
		if kind == "lstm" {
			e.values["projection"] = 1 << 24
		}
		c.entries = append(c.entries, e)
	}
	return c
}

// sayReserve tells what of the figure was not measured; see [models.Cell.Reserve].
func sayReserve(c *models.Config) {
	c.Warnings = append(c.Warnings, "what cuDNN keeps of recurrent layers is inferred from one report of 2017, and was not measured")
}

// take sets the sizes that a name gives. The input is as wide as the state, and there
// is no dropout, if the name does not say.
func (r *recurrent) take(values map[string]int64) {
	for name, to := range map[string]*int64{
		"hidden": &r.cell.Hidden, "layers": &r.cell.Layers, "directions": &r.cell.Directions, "projection": &r.cell.Projection,
		"features": &r.features, "classes": &r.classes,
	} {
		if v, ok := values[name]; ok {
			*to = v
		}
	}
	r.input = r.cell.Hidden
	if v, ok := values["input"]; ok {
		r.input = v
	}
	r.dropout = values["dropout"] > 0
	if r.features > 0 && r.classes == 0 {
		r.classes = 1
	}
}

func (r recurrent) build(g *graph, s settings) {
	if c := r.cell; c.Projection >= c.Hidden {
		g.fail("a projection of %d is not less than the hidden width %d", c.Projection, c.Hidden)
		return
	}
	if r.features == 0 && r.classes > 0 {
		g.fail("classes are of a series; say features too, or leave them out")
		return
	}
	r.cell.Dropout = r.dropout && r.cell.Layers > 1
	x := data
	if r.features > 0 {
		g.input(0, s.sequence, r.features)
		g.input(8)
	} else {
		g.text(s)
		x = g.dropIf(r.dropout, "drop", g.embedding("encoder", data, s.vocabulary, r.input))
	}
	x = g.recurrent("rnn", x, r.cell)
	if r.features > 0 {
		last := g.copyOf("last", x, g.last(x)) // a view, but its gradient is as large as all steps
		last = g.dropIf(r.dropout, "drop", last)
		g.narrowCrossEntropy("loss", g.linear("decoder", last, s.classes, true), second)
		return
	}
	x = g.dropIf(r.dropout, "drop.1", x)
	g.narrowCrossEntropy("loss", g.linear("decoder", x, s.vocabulary, true), second)
}

// recurrent adds recurrent layers of a kind.
func (g *graph) recurrent(name string, in int, cell models.Cell) int {
	shape := slices.Clone(g.shape(in))
	from := shape[len(shape)-1]
	shape[len(shape)-1] = cell.Width()
	return g.add(models.Layer{Name: name, Type: models.Recurrent, Inputs: []int{in}, Out: shape, Params: cell.Params(from), Cell: &cell})
}
