package hf

import (
	"carma/configs/models"
	"carma/estimator/networks/graph"
	"carma/estimator/networks/transformer"
)

// seq2seq returns the builder of an encoder with a decoder.
func seq2seq(set func(*fields, *transformer.Seq2Seq)) builder {
	return func(f *fields, name string, o models.Overrides) (*models.Config, error) {
		f.head(o, graph.Seq2SeqLM)
		m := &transformer.Seq2Seq{Name: name}
		set(f, m)
		if f.err != nil {
			return nil, f.err
		}
		return m.Config(o)
	}
}

// t5 has RMS norms before each part, no biases, and a bias of the scores by distance.
func t5(f *fields, m *transformer.Seq2Seq) {
	b := &m.Encoder
	b.Width, b.Inner = f.whole("d_model", 512), f.whole("d_ff", 2048)
	b.Heads, b.Key = f.whole("num_heads", 8), f.whole("d_kv", 64)
	b.Groups = b.Heads
	b.NarrowNorm, b.Dropout = true, f.chance("dropout_rate", 0.1)
	b.InnerDrop = b.Dropout
	b.Projections = transformer.Projections{Q: "q", K: "k", V: "v", Out: "o", Up: "wi", Down: "wo"}
	b.Activation, b.Gated = f.feedForward("feed_forward_proj", "relu")
	if b.Gated {
		b.Projections.Gate, b.Projections.Up = "wi_0", "wi_1"
	}
	m.Decoder = *b
	m.EncoderDepth = f.depthOr("num_layers", 6)
	m.DecoderDepth = f.depthOr("num_decoder_layers", m.EncoderDepth)
	m.Vocabulary = f.whole("vocab_size", 32128)
	m.Buckets = f.whole("relative_attention_num_buckets", 32)
	m.FinalNorm, m.FinalDrop = true, true
	m.Tied = f.flag("tie_word_embeddings", true)
	m.ScaledOutput = m.Tied
}

// feedForward reads a word like gated-gelu.
func (f *fields) feedForward(name, otherwise string) (activation string, gated bool) {
	switch word := f.text(name, otherwise); word {
	case "relu":
		return models.ReLU, false
	case "gated-gelu":
		return "new_gelu", true
	case "gated-silu":
		return models.SiLU, true
	default:
		f.fail(name, "%s is not known here; for example gated-gelu", models.Short(word))
		return models.ReLU, false
	}
}

// bart has norms after each sum and learned positions.
func bart(f *fields, m *transformer.Seq2Seq) {
	f.layersOf(&m.Encoder, "encoder", 1024, 16, 4096)
	f.layersOf(&m.Decoder, "decoder", 1024, 16, 4096)
	m.EncoderDepth, m.DecoderDepth = f.depthOr("encoder_layers", 12), f.depthOr("decoder_layers", 12)
	m.Encoder.SumNorm, m.Decoder.SumNorm = true, true
	m.Vocabulary = f.whole("vocab_size", 50265)
	m.Longest = f.whole("max_position_embeddings", 1024)
	m.Positions = m.Longest + 2
	m.EntryNorm, m.Tied, m.LogitsBias = true, true, true
	m.ScaledInput = f.flag("scale_embedding", false)
}

// mbart has norms before each part.
func mbart(f *fields, m *transformer.Seq2Seq) {
	bart(f, m)
	m.Encoder.SumNorm, m.Decoder.SumNorm = false, false
	m.FinalNorm = true
}

// marian has fixed positions and no norm of the embeddings.
func marian(f *fields, m *transformer.Seq2Seq) {
	bart(f, m)
	m.Positions, m.FixedPositions, m.EntryNorm = m.Longest, true, false
}

// pegasus has fixed positions and norms before each part.
func pegasus(f *fields, m *transformer.Seq2Seq) {
	mbart(f, m)
	m.Positions, m.FixedPositions, m.EntryNorm = m.Longest, true, false
}

// whisper encodes thirty seconds of sound as 1,500 tokens.
func whisper(f *fields, m *transformer.Seq2Seq) {
	f.layersOf(&m.Encoder, "encoder", 384, 6, 1536)
	f.layersOf(&m.Decoder, "decoder", 384, 6, 1536)
	m.EncoderDepth, m.DecoderDepth = f.depthOr("encoder_layers", 4), f.depthOr("decoder_layers", 4)
	for _, b := range []*transformer.Block{&m.Encoder, &m.Decoder} {
		b.PlainKey, b.OrderedQKV, b.OrderedOut = true, true, true
	}
	m.Encoder.Dropout = f.chance("dropout", 0)
	m.Decoder.Dropout = m.Encoder.Dropout
	m.Vocabulary = f.whole("vocab_size", 51865)
	m.Longest = f.whole("max_target_positions", 448)
	m.Positions, m.FinalNorm, m.Tied = m.Longest, true, true
	m.ScaledInput = f.flag("scale_embedding", false)
	m.Sound = transformer.Sound{Bins: f.whole("num_mel_bins", 80), Frames: f.whole("max_source_positions", 1500)}
}

// layersOf reads the blocks of one side of a BART-like model.
func (f *fields) layersOf(b *transformer.Block, side string, width, heads, inner int64) {
	b.Width = f.whole("d_model", width)
	b.Inner = f.whole(side+"_ffn_dim", inner)
	f.heads(b, side+"_attention_heads", heads)
	b.LayerNorm, b.BiasQKV, b.BiasOut, b.BiasInner = true, true, true, true
	b.Activation = f.activation("activation_function", "gelu")
	b.Dropout, b.InnerDrop = f.chance("dropout", 0.1), f.chance("activation_dropout", 0)
	b.Projections = transformer.Projections{Q: "q_proj", K: "k_proj", V: "v_proj", Out: "out_proj", Up: "fc1", Down: "fc2"}
}
