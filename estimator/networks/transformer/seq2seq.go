package transformer

import (
	"fmt"

	"carma/configs/models"
	"carma/estimator/networks/graph"
)

// Seq2Seq is an encoder and a decoder that attends to the encoder's tokens, as built by
// the transformers library.
type Seq2Seq struct {
	Name             string
	Encoder, Decoder Block
	// EncoderDepth and DecoderDepth are the numbers of blocks.
	EncoderDepth, DecoderDepth int64
	Vocabulary                 int64
	// Longest is the largest number of tokens of the target, and of a text source, or 0 for
	// no limit. Positions is the number of rows of each table of positions.
	Longest, Positions int64
	FixedPositions     bool  // positions are not trained
	Buckets            int64 // rows of the table of distances, for a bias of the scores (T5)
	EntryNorm          bool  // a norm after the embeddings (BART)
	FinalNorm          bool  // a norm after the blocks of encoder and decoder
	FinalDrop          bool  // and a dropout after the norm
	ScaledInput        bool  // embeddings are multiplied by a constant
	ScaledOutput       bool  // the decoder's output tokens are multiplied by a constant
	Tied               bool  // the head shares the table of tokens
	LogitsBias         bool  // untrained numbers are added to the logits (BART)
	Sound              Sound // the source is sound, if not zero; otherwise text
}

// Sound is a spectrum as the source of a model (Whisper).
type Sound struct {
	Bins   int64 // frequency bands of the spectrum
	Frames int64 // number of tokens, half the spectrum's time steps
}

// Config returns the training on pairs of a source and a target, by default with a batch
// of 1, a source of at most 512 tokens and a target of at most 128.
func (m *Seq2Seq) Config(o models.Overrides) (*models.Config, error) {
	e := graph.Network{
		Name: m.Name, Kind: models.Transformer, Batch: 1, Longest: m.Longest,
		Size: graph.Sizes{Sequence: 512, Target: 128, Vocabulary: m.Vocabulary}, Build: m.build,
	}
	if m.Longest > 0 {
		e.Size.Sequence, e.Size.Target = min(512, m.Longest), min(128, m.Longest)
	}
	if m.Sound.Bins > 0 {
		e.Size.Sequence = 0
	}
	return e.Config("", o)
}

func (m *Seq2Seq) build(g *graph.Graph, s graph.Sizes) {
	var source int
	if m.Sound.Bins > 0 {
		g.Input(0, m.Sound.Bins, 1, 2*m.Sound.Frames)
	} else {
		g.Input(8, s.Sequence)
	}
	g.Input(8, s.Target) // labels
	g.Input(8, s.Target) // the labels, shifted: the decoder's input
	if m.Sound.Bins > 0 {
		source = m.spectrum(g)
	} else {
		source = m.embed(g, "shared", graph.Data, s.Sequence, s.Vocabulary)
	}
	x := m.stack(g, "encoder", &m.Encoder, m.EncoderDepth, source, 0)
	target := m.embed(g, "decoder.embed_tokens", -len(g.Inputs), s.Target, s.Vocabulary)
	x = m.stack(g, "decoder", &m.Decoder, m.DecoderDepth, target, x)
	if m.ScaledOutput {
		x = g.Scale("scale", x)
	}
	if m.Tied {
		x = g.Tied("lm_head", x, s.Vocabulary, false)
	} else {
		x = g.Plain("lm_head", x, s.Vocabulary, false)
	}
	if m.LogitsBias {
		bias := g.Table("final_logits_bias", s.Vocabulary)
		g.Layers[bias].Params = nil // a buffer, not trained
		x = g.Plus("add_bias", x, bias)
	}
	g.NarrowCrossEntropy("loss", x, graph.Second)
}

// embed looks up tokens and their positions. Encoder and decoder share the table of
// tokens.
func (m *Seq2Seq) embed(g *graph.Graph, name string, ids int, length, words int64) int {
	x := g.Embedding(name, ids, words, m.Decoder.Width)
	g.Layers[x].Tied = ids != graph.Data && m.Sound.Bins == 0
	if m.ScaledInput {
		x = g.Scale(name+".scale", x)
	}
	if m.Positions > 0 {
		p := g.Positions(name+".embed_positions", m.Positions, length, m.Decoder.Width)
		g.Layers[p].Frozen = g.Layers[p].Frozen || m.FixedPositions
		x = g.Plus(name+".add", x, p)
	}
	return x
}

// spectrum adds the two convolutions over time and the fixed positions.
func (m *Seq2Seq) spectrum(g *graph.Graph) int {
	defer g.Module("encoder")()
	width := m.Encoder.Width
	x := g.Conv("conv1", graph.Data, graph.Window{Out: width, Kernel: 1, Width: 3, PadWidth: 1, Bias: true})
	x = g.Unary(models.GELU, "gelu1", x)
	x = g.Conv("conv2", x, graph.Window{Out: width, Kernel: 1, Width: 3, PadWidth: 1, Stride: 2, Bias: true})
	x = g.View("permute", g.Unary(models.GELU, "gelu2", x), m.Sound.Frames, width)
	p := g.Positions("embed_positions", m.Sound.Frames, m.Sound.Frames, width)
	g.Layers[p].Frozen = true
	return g.Plus("add", x, p)
}

// stack adds the blocks of the encoder, or of the decoder if encoded is a layer.
func (m *Seq2Seq) stack(g *graph.Graph, name string, b *Block, depth int64, x, encoded int) int {
	defer g.Module(name)()
	if m.EntryNorm {
		x = b.Norm(g, "layernorm_embedding", x)
	}
	x = b.drop(g, "dropout", x)
	with := beside{encoded: encoded}
	if n := g.Shape(x)[0]; m.Buckets > 0 {
		with.bias = g.CopyOf("position_bias", g.Table("relative_attention_bias", m.Buckets, b.Heads), b.Heads, n, n)
	}
	for i := range depth {
		x = b.blockBeside(g, fmt.Sprintf("layers.%d", i), x, i, with)
	}
	if m.FinalNorm {
		x = b.Norm(g, "layer_norm", x)
	}
	if m.FinalDrop {
		x = b.drop(g, "last_dropout", x)
	}
	return x
}
