package transformer

import (
	"fmt"

	"carma/configs/models"
	"carma/estimator/networks/graph"
)

// TextEncoder is a model that attends to all tokens of a text, as built by the
// transformers library: tables of tokens and positions, blocks, and a head.
type TextEncoder struct {
	Name string
	Block
	Depth      int64
	Vocabulary int64
	// Longest is the largest number of tokens. Positions is the number of rows of a
	// learned table, or 0. Types is the number of rows of the table of segments.
	Longest, Positions, Types int64
	// Embedding is the width of the tables, or 0 for the width of the tokens (ELECTRA).
	Embedding int64
	// OwnPositions is set if each sample looks up its own positions, computed from its
	// tokens (RoBERTa).
	OwnPositions bool
	FinalNorm    bool
	Bare         bool // embeddings are not normed (CLIP)
	PlainProject bool // the embeddings' projection has no bias, and comes before the norm (DeBERTa)
	// Convolved is the kernel size of a convolution of the embeddings whose output is added
	// after the first block, or 0 (DeBERTa).
	Convolved int64

	Head    string
	Classes int64
	Top     Top
}

// Top contains the differences between encoders' heads.
type Top struct {
	Pooler     bool   // the bare model has a dense layer over the first token (BERT)
	Activation string // activation after the dense layer before the classes, or empty without such a layer
	Plain      bool   // dense layers have no bias (ModernBERT)
	Norm       bool   // a norm after the dense layer, which token classification also has (ModernBERT)
	Mean       bool   // the classes come from the mean of the tokens, otherwise from the first token
	Wide       bool   // the loss over the vocabulary is computed in 32 bits, regardless of the logits' precision
	Narrow     bool   // the dense layer before the vocabulary reduces to the width of the tables (ELECTRA)
	Joint      bool   // the dense layer belongs to the classifier, so it is trained in addition to adapters (RoBERTa)
}

// Config returns the training of an encoder with its head, by default with a batch of 1
// and at most 512 tokens.
func (t *TextEncoder) Config(o models.Overrides) (*models.Config, error) {
	e := graph.Network{
		Name: t.Name, Kind: models.Transformer, Batch: 1, Longest: t.Longest,
		Size: graph.Sizes{Sequence: 512, Vocabulary: t.Vocabulary}, Build: t.build,
	}
	if t.Longest > 0 {
		e.Size.Sequence = min(512, t.Longest)
	}
	return e.Headed(t.Head, t.Classes).Config("", o)
}

func (t *TextEncoder) build(g *graph.Graph, s graph.Sizes) {
	g.Input(8, s.Sequence)
	switch t.Head {
	case graph.SequenceClassification:
		g.Input(8, 1)
	case graph.QuestionAnswering:
		g.Input(8, 2)
	default:
		g.Input(8, s.Sequence)
	}
	t.head(g, t.tokens(g, graph.Data, s), s)
}

// tokens adds the encoder of a text up to its output tokens.
func (t *TextEncoder) tokens(g *graph.Graph, ids int, s graph.Sizes) int {
	x := t.embed(g, ids, s)
	var with beside
	if t.Distances != nil {
		with.bias = t.Distances.table(g, t.Width)
	}
	first := x
	for i := range t.Depth {
		x = t.blockBeside(g, fmt.Sprintf("encoder.layer.%d", i), x, i, with)
		if t.Convolved > 0 && i == 0 {
			x = t.convolve(g, first, x)
		}
	}
	if t.FinalNorm {
		x = t.Norm(g, "final_norm", x)
	}
	return x
}

func (t *TextEncoder) embed(g *graph.Graph, ids int, s graph.Sizes) int {
	defer g.Module("embeddings")()
	width := t.Embedding
	if width == 0 {
		width = t.Width
	}
	x := g.Embedding("word_embeddings", ids, s.Vocabulary, width)
	if t.Types > 0 {
		x = g.Plus("add_types", x, g.Embedding("token_type_embeddings", ids, t.Types, width))
	}
	switch {
	case t.OwnPositions:
		x = g.Plus("add_positions", x, g.Embedding("position_embeddings", ids, t.Positions, width))
	case t.Positions > 0:
		x = g.Plus("add_positions", x, g.Positions("position_embeddings", t.Positions, s.Sequence, width))
	}
	if width != t.Width && t.PlainProject {
		x = g.Linear("embed_proj", x, t.Width, false)
		width = t.Width
	}
	if !t.Bare {
		x = t.Norm(g, "LayerNorm", x)
	}
	x = t.drop(g, "dropout", x)
	if width != t.Width {
		x = g.Linear("embeddings_project", x, t.Width, true)
	}
	return x
}

// convolve adds a convolution of the embeddings to the first block's output.
func (t *TextEncoder) convolve(g *graph.Graph, in, x int) int {
	defer g.Module("encoder.conv")()
	n := g.Shape(in)[0]
	c := g.Conv("conv", g.CopyOf("transpose", in, t.Width, 1, n), graph.Window{Out: t.Width, Kernel: 1, Width: t.Convolved, PadWidth: t.Convolved / 2, Bias: true})
	c = g.CopyOf("back", c, n, t.Width)
	c = g.Unary(models.Tanh, "activation", t.drop(g, "dropout", c))
	return g.Scale("masked", t.Norm(g, "LayerNorm", g.Plus("add", x, c)))
}

// head ends the network with the trained head.
func (t *TextEncoder) head(g *graph.Graph, x int, s graph.Sizes) {
	switch t.Head {
	case graph.MaskedLM:
		t.predict(g, x, s)
	case graph.SequenceClassification:
		first := func() { x = t.beforeClasses(g, "pooler", t.pooled(g, x), t.Top.Norm) }
		if t.Top.Joint {
			g.Trained(first)
		} else {
			first()
		}
		g.NewClasses("classifier", t.drop(g, "dropout", x), s)
	case graph.TokenClassification, graph.QuestionAnswering:
		if t.Top.Norm {
			x = t.beforeClasses(g, "head", x, true)
		}
		classes := s.Classes
		if t.Head == graph.QuestionAnswering {
			classes = 2
		} else {
			x = t.drop(g, "dropout", x)
		}
		g.Trained(func() { x = g.Plain("classifier", x, classes, true) })
		g.NarrowCrossEntropy("loss", x, graph.Second)
	case graph.PreTraining: // classifies which tokens were replaced (ELECTRA)
		x = g.Unary(models.GELU, "activation", g.Linear("dense", x, t.Width, true))
		g.Loss("loss", g.Plain("dense_prediction", x, 1, true), graph.Second)
	default:
		if t.Top.Pooler {
			g.Unused(func() { t.beforeClasses(g, "pooler", g.View("first", x, t.Width), false) })
		}
		g.Loss("loss", g.Op(models.Mean, "mean", []int64{t.Width}, x))
	}
}

// pooled adds one vector for each text. A mean is the sum of the tokens times a mask.
func (t *TextEncoder) pooled(g *graph.Graph, x int) int {
	if t.Top.Mean {
		return g.Op(models.Mean, "mean", []int64{t.Width}, g.Scale("masked", x))
	}
	return g.View("first", x, t.Width)
}

// beforeClasses adds the dense layer before the classes.
func (t *TextEncoder) beforeClasses(g *graph.Graph, name string, x int, norm bool) int {
	if t.Top.Activation == "" {
		return x
	}
	x = g.Unary(t.Top.Activation, name+".activation", g.Linear(name+".dense", x, t.Width, !t.Top.Plain))
	if norm {
		x = t.Norm(g, name+".norm", x)
	}
	return x
}

// predict adds the head that fills in masked tokens.
func (t *TextEncoder) predict(g *graph.Graph, x int, s graph.Sizes) {
	leave := g.Module("predictions")
	width := t.Width
	if t.Top.Narrow {
		width = t.Embedding
	}
	x = g.Unary(models.GELU, "activation", g.Linear("dense", x, width, !t.Top.Plain))
	x = g.Tied("decoder", t.Norm(g, "norm", x), s.Vocabulary, true)
	leave()
	if t.Top.Wide {
		g.CrossEntropy("loss", x, graph.Second)
	} else {
		g.NarrowCrossEntropy("loss", x, graph.Second)
	}
}
