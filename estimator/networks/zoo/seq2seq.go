package zoo

import (
	"fmt"

	"carma/configs/models"
)

// Seq2SeqLM is the head of models from text or sound to text: the next token of the
// target; see [MaskedLM].
const Seq2SeqLM = "conditional-generation"

// Seq2Seq is an encoder and a decoder, which takes the encoder's tokens, as the
// transformers library builds it.
type Seq2Seq struct {
	Name             string
	Encoder, Decoder Block
	// EncoderDepth and DecoderDepth are the numbers of blocks.
	EncoderDepth, DecoderDepth int64
	Vocabulary                 int64
	// Longest is the largest number of tokens of the target, and of the source if that is
	// text; 0: no limit. Positions is the number of rows of each table of positions.
	Longest, Positions int64
	FixedPositions     bool  // they are not trained
	Buckets            int64 // rows of the table of distances, for a bias of the scores (T5)
	EntryNorm          bool  // after the embeddings (BART)
	FinalNorm          bool  // after the blocks of each
	FinalDrop          bool  // and a dropout
	ScaledInput        bool  // embeddings are multiplied by a constant
	ScaledOutput       bool  // the decoder's last tokens are
	Tied               bool  // the head shares the table of tokens
	LogitsBias         bool  // numbers that are added to the logits and not trained (BART)
	Sound              Sound // the source; its zero value: text
}

// Sound is a spectrum as the source of a model (Whisper).
type Sound struct {
	Bins   int64 // bands of the spectrum
	Frames int64 // moments of it that are tokens, half of all
}

// Config is the training on pairs of a source and a target, by default with a batch of 1,
// a source of at most 512 tokens and a target of at most 128.
func (m *Seq2Seq) Config(o models.Overrides) (*models.Config, error) {
	e := entry{
		name: m.Name, kind: models.Transformer, batch: 1, longest: m.Longest,
		size: settings{sequence: 512, target: 128, vocabulary: m.Vocabulary}, build: m.build,
	}
	if m.Longest > 0 {
		e.size.sequence, e.size.target = min(512, m.Longest), min(128, m.Longest)
	}
	if m.Sound.Bins > 0 {
		e.size.sequence = 0
	}
	return e.config("", o)
}

func (m *Seq2Seq) build(g *graph, s settings) {
	var source int
	if m.Sound.Bins > 0 {
		g.input(0, m.Sound.Bins, 1, 2*m.Sound.Frames)
	} else {
		g.input(8, s.sequence)
	}
	g.input(8, s.target) // labels
	g.input(8, s.target) // the same, shifted: what the decoder reads
	if m.Sound.Bins > 0 {
		source = m.spectrum(g)
	} else {
		source = m.embed(g, "shared", data, s.sequence, s.vocabulary)
	}
	x := m.stack(g, "encoder", &m.Encoder, m.EncoderDepth, source, 0)
	target := m.embed(g, "decoder.embed_tokens", -len(g.inputs), s.target, s.vocabulary)
	x = m.stack(g, "decoder", &m.Decoder, m.DecoderDepth, target, x)
	if m.ScaledOutput {
		x = g.scale("scale", x)
	}
	if m.Tied {
		x = g.tied("lm_head", x, s.vocabulary, false)
	} else {
		x = g.plain("lm_head", x, s.vocabulary, false)
	}
	if m.LogitsBias {
		bias := g.table("final_logits_bias", s.vocabulary)
		g.layers[bias].Params = nil // a buffer
		x = g.plus("add_bias", x, bias)
	}
	g.narrowCrossEntropy("loss", x, second)
}

// embed looks up tokens and their positions. The decoder's table of tokens is the
// encoder's.
func (m *Seq2Seq) embed(g *graph, name string, ids int, length, words int64) int {
	x := g.embedding(name, ids, words, m.Decoder.Width)
	g.layers[x].Tied = ids != data && m.Sound.Bins == 0
	if m.ScaledInput {
		x = g.scale(name+".scale", x)
	}
	if m.Positions > 0 {
		p := g.positions(name+".embed_positions", m.Positions, length, m.Decoder.Width)
		g.layers[p].Frozen = g.layers[p].Frozen || m.FixedPositions
		x = g.plus(name+".add", x, p)
	}
	return x
}

// spectrum adds the two convolutions over time and the positions, which are fixed.
func (m *Seq2Seq) spectrum(g *graph) int {
	defer g.module("encoder")()
	width := m.Encoder.Width
	x := g.conv("conv1", data, window{out: width, kernel: 1, width: 3, padWidth: 1, bias: true})
	x = g.unary(models.GELU, "gelu1", x)
	x = g.conv("conv2", x, window{out: width, kernel: 1, width: 3, padWidth: 1, stride: 2, bias: true})
	x = g.view("permute", g.unary(models.GELU, "gelu2", x), m.Sound.Frames, width)
	p := g.positions("embed_positions", m.Sound.Frames, m.Sound.Frames, width)
	g.layers[p].Frozen = true
	return g.plus("add", x, p)
}

// stack adds the blocks of the encoder, or those of the decoder if encoded is a layer.
func (m *Seq2Seq) stack(g *graph, name string, b *Block, depth int64, x, encoded int) int {
	defer g.module(name)()
	if m.EntryNorm {
		x = b.norm(g, "layernorm_embedding", x)
	}
	x = b.drop(g, "dropout", x)
	with := beside{encoded: encoded}
	if n := g.shape(x)[0]; m.Buckets > 0 {
		with.bias = g.copyOf("position_bias", g.table("relative_attention_bias", m.Buckets, b.Heads), b.Heads, n, n)
	}
	for i := range depth {
		x = b.blockBeside(g, fmt.Sprintf("layers.%d", i), x, i, with)
	}
	if m.FinalNorm {
		x = b.norm(g, "layer_norm", x)
	}
	if m.FinalDrop {
		x = b.drop(g, "last_dropout", x)
	}
	return x
}
