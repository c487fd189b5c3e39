package zoo

import (
	"fmt"
	"slices"

	"carma/configs/models"
)

// Names of heads: the last layers of a model and its loss. They are those of the
// transformers library's classes: BertForMaskedLM has the head masked-lm.
const (
	MaskedLM               = "masked-lm"
	CausalLM               = "causal-lm"
	SequenceClassification = "sequence-classification"
	TokenClassification    = "token-classification"
	QuestionAnswering      = "question-answering"
	PreTraining            = "pre-training"
	BaseModel              = "model" // no head: a loss of the mean of the tokens
)

// HasClasses reports whether a head has a number of classes.
func HasClasses(head string) bool {
	return slices.Contains([]string{SequenceClassification, TokenClassification, ImageClassification, ObjectDetection, Segmentation}, head)
}

// headed is an entry with a number of classes if its head has one.
func (e entry) headed(head string, classes int64) entry {
	if HasClasses(head) {
		e.size.classes = classes
	}
	return e
}

// TextEncoder is a model that sees all tokens of a text at once, as the transformers
// library builds it: tables of tokens and positions, blocks, and a head.
type TextEncoder struct {
	Name string
	Block
	Depth      int64
	Vocabulary int64
	// Longest is the largest number of tokens. Positions is the number of rows of a
	// learned table, 0: none. Types is that of the table of segments.
	Longest, Positions, Types int64
	// Embedding is the width of the tables; 0: that of the tokens (ELECTRA).
	Embedding int64
	// OwnPositions: each sample looks up its own positions, as they are computed from
	// its tokens (RoBERTa).
	OwnPositions bool
	FinalNorm    bool
	Bare         bool // embeddings are not normed (CLIP)
	PlainProject bool // their projection has no bias, and comes before the norm (DeBERTa)
	// Convolved is the kernel of a convolution of the embeddings that is added after the
	// first block; 0: none (DeBERTa).
	Convolved int64

	Head    string
	Classes int64
	Top     Top
}

// Top says how the heads of encoders differ.
type Top struct {
	Pooler     bool   // the bare model has a dense layer over the first token (BERT)
	Activation string // after the dense layer before the classes; empty: no such layer
	Plain      bool   // dense layers have no bias (ModernBERT)
	Norm       bool   // a norm after that dense layer, and that layer before token classes too (ModernBERT)
	Mean       bool   // the classes come from the mean of the tokens, else from the first token
	Wide       bool   // the loss over the vocabulary is computed in 32 bits, whatever the logits have
	Narrow     bool   // the dense layer before the vocabulary gives the width of the tables (ELECTRA)
	Joint      bool   // the dense layer is a part of the classifier, and so trained beside adapters (RoBERTa)
}

// Config is the training of an encoder with its head, by default with a batch of 1
// and at most 512 tokens.
func (t *TextEncoder) Config(o models.Overrides) (*models.Config, error) {
	e := entry{
		name: t.Name, kind: models.Transformer, batch: 1, longest: t.Longest,
		size: settings{sequence: 512, vocabulary: t.Vocabulary}, build: t.build,
	}
	if t.Longest > 0 {
		e.size.sequence = min(512, t.Longest)
	}
	return e.headed(t.Head, t.Classes).config("", o)
}

func (t *TextEncoder) build(g *graph, s settings) {
	g.input(8, s.sequence)
	switch t.Head {
	case SequenceClassification:
		g.input(8, 1)
	case QuestionAnswering:
		g.input(8, 2)
	default:
		g.input(8, s.sequence)
	}
	t.head(g, t.tokens(g, data, s), s)
}

// tokens adds the encoder of a text up to its last tokens.
func (t *TextEncoder) tokens(g *graph, ids int, s settings) int {
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
		x = t.norm(g, "final_norm", x)
	}
	return x
}

func (t *TextEncoder) embed(g *graph, ids int, s settings) int {
	defer g.module("embeddings")()
	width := t.Embedding
	if width == 0 {
		width = t.Width
	}
	x := g.embedding("word_embeddings", ids, s.vocabulary, width)
	if t.Types > 0 {
		x = g.plus("add_types", x, g.embedding("token_type_embeddings", ids, t.Types, width))
	}
	switch {
	case t.OwnPositions:
		x = g.plus("add_positions", x, g.embedding("position_embeddings", ids, t.Positions, width))
	case t.Positions > 0:
		x = g.plus("add_positions", x, g.positions("position_embeddings", t.Positions, s.sequence, width))
	}
	if width != t.Width && t.PlainProject {
		x = g.linear("embed_proj", x, t.Width, false)
		width = t.Width
	}
	if !t.Bare {
		x = t.norm(g, "LayerNorm", x)
	}
	x = t.drop(g, "dropout", x)
	if width != t.Width {
		x = g.linear("embeddings_project", x, t.Width, true)
	}
	return x
}

// convolve adds a convolution of the embeddings to the first block's output.
func (t *TextEncoder) convolve(g *graph, in, x int) int {
	defer g.module("encoder.conv")()
	n := g.shape(in)[0]
	c := g.conv("conv", g.copyOf("transpose", in, t.Width, 1, n), window{out: t.Width, kernel: 1, width: t.Convolved, padWidth: t.Convolved / 2, bias: true})
	c = g.copyOf("back", c, n, t.Width)
	c = g.unary(models.Tanh, "activation", t.drop(g, "dropout", c))
	return g.scale("masked", t.norm(g, "LayerNorm", g.plus("add", x, c)))
}

// head ends the network with the head that is trained.
func (t *TextEncoder) head(g *graph, x int, s settings) {
	switch t.Head {
	case MaskedLM:
		t.predict(g, x, s)
	case SequenceClassification:
		first := func() { x = t.beforeClasses(g, "pooler", t.pooled(g, x), t.Top.Norm) }
		if t.Top.Joint {
			g.trained(first)
		} else {
			first()
		}
		g.newClasses("classifier", t.drop(g, "dropout", x), s)
	case TokenClassification, QuestionAnswering:
		if t.Top.Norm {
			x = t.beforeClasses(g, "head", x, true)
		}
		classes := s.classes
		if t.Head == QuestionAnswering {
			classes = 2
		} else {
			x = t.drop(g, "dropout", x)
		}
		g.trained(func() { x = g.plain("classifier", x, classes, true) })
		g.narrowCrossEntropy("loss", x, second)
	case PreTraining: // which tokens were replaced (ELECTRA)
		x = g.unary(models.GELU, "activation", g.linear("dense", x, t.Width, true))
		g.loss("loss", g.plain("dense_prediction", x, 1, true), second)
	default:
		if t.Top.Pooler {
			g.unused(func() { t.beforeClasses(g, "pooler", g.view("first", x, t.Width), false) })
		}
		g.loss("loss", g.op(models.Mean, "mean", []int64{t.Width}, x))
	}
}

// pooled is one vector for each text. A mean is a sum of the tokens times a mask.
func (t *TextEncoder) pooled(g *graph, x int) int {
	if t.Top.Mean {
		return g.op(models.Mean, "mean", []int64{t.Width}, g.scale("masked", x))
	}
	return g.view("first", x, t.Width)
}

// beforeClasses is the dense layer before the classes.
func (t *TextEncoder) beforeClasses(g *graph, name string, x int, norm bool) int {
	if t.Top.Activation == "" {
		return x
	}
	x = g.unary(t.Top.Activation, name+".activation", g.linear(name+".dense", x, t.Width, !t.Top.Plain))
	if norm {
		x = t.norm(g, name+".norm", x)
	}
	return x
}

// predict is the head that fills in masked tokens.
func (t *TextEncoder) predict(g *graph, x int, s settings) {
	leave := g.module("predictions")
	width := t.Width
	if t.Top.Narrow {
		width = t.Embedding
	}
	x = g.unary(models.GELU, "activation", g.linear("dense", x, width, !t.Top.Plain))
	x = g.tied("decoder", t.norm(g, "norm", x), s.vocabulary, true)
	leave()
	if t.Top.Wide {
		g.crossEntropy("loss", x, second)
	} else {
		g.narrowCrossEntropy("loss", x, second)
	}
}
