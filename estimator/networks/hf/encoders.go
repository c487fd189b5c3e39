package hf

import (
	"carma/configs/models"
	"carma/estimator/networks/graph"
	"carma/estimator/networks/transformer"
)

// textHeads are the heads of text encoders.
var textHeads = []string{graph.MaskedLM, graph.SequenceClassification, graph.TokenClassification, graph.QuestionAnswering, graph.BaseModel}

// encoder returns the builder of a text encoder. more are heads besides textHeads.
func encoder(set func(*fields, *transformer.TextEncoder), more ...string) builder {
	return func(f *fields, name string, o models.Overrides) (*models.Config, error) {
		t := &transformer.TextEncoder{Name: name, Head: f.head(o, append(more, textHeads...)...), Classes: f.classes()}
		set(f, t)
		if f.err != nil {
			return nil, f.err
		}
		return t.Config(o)
	}
}

// bert sets norms after each sum, three tables of embeddings, and biases everywhere.
func bert(f *fields, t *transformer.TextEncoder) {
	t.Width, t.Inner = f.whole("hidden_size", 768), f.whole("intermediate_size", 3072)
	t.Depth = f.depthOr("num_hidden_layers", 12)
	f.heads(&t.Block, "num_attention_heads", 12)
	t.Vocabulary = f.whole("vocab_size", 30522)
	t.Positions = f.whole("max_position_embeddings", 512)
	t.Longest, t.Types = t.Positions, f.orZero("type_vocab_size", 2)
	t.LayerNorm, t.SumNorm, t.Dropout = true, true, f.chance("hidden_dropout_prob", 0.1)
	t.Activation = f.activation("hidden_act", "gelu")
	t.BiasQKV, t.BiasOut, t.BiasInner = true, true, true
	t.Projections = bertNames
	t.Top = transformer.Top{Activation: models.Tanh, Pooler: true}
}

var bertNames = transformer.Projections{Q: "query", K: "key", V: "value", Out: "attention.output.dense", Up: "intermediate.dense", Down: "output.dense"}

// roberta has a table of positions with two rows more than tokens.
func roberta(f *fields, t *transformer.TextEncoder) {
	bert(f, t)
	t.Vocabulary = f.whole("vocab_size", 50265)
	t.OwnPositions = true
	t.Longest = max(t.Positions-f.orZero("pad_token_id", 1)-1, 1)
	t.Top.Joint = true
}

func distilBERT(f *fields, t *transformer.TextEncoder) {
	bert(f, t)
	t.Width, t.Inner = f.whole("dim", 768), f.whole("hidden_dim", 3072)
	t.Depth = f.depthOr("n_layers", 6)
	f.heads(&t.Block, "n_heads", 12)
	t.Types = 0
	t.Activation = f.activation("activation", "gelu")
	t.Dropout = f.chance("dropout", 0.1)
	t.Projections = transformer.Projections{Q: "q_lin", K: "k_lin", V: "v_lin", Out: "out_lin", Up: "lin1", Down: "lin2"}
	t.Top = transformer.Top{Activation: models.ReLU}
}

func electra(f *fields, t *transformer.TextEncoder) {
	bert(f, t)
	t.Width, t.Inner = f.whole("hidden_size", 256), f.whole("intermediate_size", 1024)
	f.heads(&t.Block, "num_attention_heads", 4)
	t.Embedding = f.whole("embedding_size", 128)
	t.Top = transformer.Top{Activation: models.GELU, Joint: true, Narrow: true}
}

// debertaV2 has scores of tokens with distances.
func debertaV2(f *fields, t *transformer.TextEncoder) {
	bert(f, t)
	t.Width, t.Inner = f.whole("hidden_size", 1536), f.whole("intermediate_size", 6144)
	t.Depth = f.depthOr("num_hidden_layers", 24)
	f.heads(&t.Block, "num_attention_heads", 24)
	t.Vocabulary, t.Types = f.whole("vocab_size", 128100), f.orZero("type_vocab_size", 0)
	if !f.flag("position_biased_input", true) {
		t.Positions = 0
	}
	if n := f.whole("embedding_size", t.Width); n != t.Width {
		t.Embedding, t.PlainProject = n, true
	}
	t.Projections.Q, t.Projections.K, t.Projections.V = "query_proj", "key_proj", "value_proj"
	t.Top = transformer.Top{Activation: models.GELU}
	t.Convolved = f.orZero("conv_kernel_size", 0)
	if !f.flag("relative_attention", false) {
		return
	}
	span := t.Longest
	if f.positive("max_relative_positions") {
		span = f.whole("max_relative_positions", 1)
	}
	if f.positive("position_buckets") {
		span = f.whole("position_buckets", 1)
	}
	t.Distances = &transformer.Distances{
		Span: span, Norm: f.has("norm_rel_ebd", "layer_norm"), Shared: f.flag("share_att_key", false),
		Dropout:         f.chance("attention_probs_dropout_prob", 0.1),
		TokenToDistance: f.has("pos_att_type", "c2p"), DistanceToToken: f.has("pos_att_type", "p2c"),
	}
}

// modernBERT has rotary positions, gated linear units, and norms before each part
// without biases.
func modernBERT(f *fields, t *transformer.TextEncoder) {
	bert(f, t)
	t.Vocabulary = f.whole("vocab_size", 50368)
	t.Inner, t.Depth = f.whole("intermediate_size", 1152), f.depthOr("num_hidden_layers", 22)
	t.Longest, t.Positions, t.Types = f.whole("max_position_embeddings", 8192), 0, 0
	t.SumNorm, t.FirstBare, t.FinalNorm, t.Dropout = false, true, true, false
	t.PlainNorm = !f.flag("norm_bias", false)
	t.Rotary, t.Gated, t.JointGate, t.JointQKV = true, true, true, true
	t.Activation = f.activation("hidden_activation", "gelu")
	bias := f.flag("attention_bias", false)
	t.BiasQKV, t.BiasOut, t.BiasInner = bias, bias, f.flag("mlp_bias", false)
	t.Projections = transformer.Projections{QKV: "Wqkv", Out: "attn.Wo", GateUp: "Wi", Down: "mlp.Wo"}
	t.Window, t.Global = f.whole("local_attention", 128)/2, f.whole("global_attn_every_n_layers", 3)
	mean := f.text("classifier_pooling", "cls") == "mean"
	t.Top = transformer.Top{Activation: f.activation("classifier_activation", "gelu"), Plain: !f.flag("classifier_bias", false), Norm: true, Wide: true, Mean: mean}
}
