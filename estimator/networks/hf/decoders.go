package hf

import (
	"carma/configs/models"
	"carma/estimator/networks/graph"
	"carma/estimator/networks/transformer"
)

// decoder returns the builder of a causal language model.
func decoder(set func(*fields, *transformer.Decoder)) builder {
	return func(f *fields, name string, o models.Overrides) (*models.Config, error) {
		d := &transformer.Decoder{Name: name, Head: f.head(o, graph.CausalLM, graph.SequenceClassification), Classes: f.classes()}
		set(f, d)
		if f.err != nil {
			return nil, f.err
		}
		if d.Groups > d.Heads || d.Heads%d.Groups != 0 {
			return nil, wrong("num_key_value_heads", "%d does not divide the %d heads", d.Groups, d.Heads)
		}
		return d.Config(o)
	}
}

// activations maps hidden_act to types of layers.
var activations = map[string]string{
	"silu": models.SiLU, "swish": models.SiLU, "gelu": models.GELU, "gelu_pytorch_tanh": models.GELU, "gelu_fast": models.GELU,
	"relu": models.ReLU, "gelu_new": "new_gelu", "relu2": models.ReLU,
	"quick_gelu": "quick_gelu",
}

func (f *fields) activation(name, otherwise string) string {
	word := f.text(name, otherwise)
	if a, ok := activations[word]; ok {
		return a
	}
	f.fail(name, "%s is no known activation; for example silu", models.Short(word))
	return models.SiLU
}

// split returns the width of each head.
func (f *fields) split(width, heads int64) int64 {
	if heads > width {
		f.fail("num_attention_heads", "%d heads do not fit into a width of %d", heads, width)
	}
	return max(width/heads, 1)
}

// heads reads the number of heads of an attention in which each head has its own keys and
// values.
func (f *fields) heads(b *transformer.Block, name string, otherwise int64) {
	b.Heads = f.whole(name, otherwise)
	b.Groups, b.Key = b.Heads, f.split(b.Width, b.Heads)
}

// deepest bounds the number of blocks: the network has some tens of layers for each.
const deepest = 2000

func (f *fields) depth(name string) int64 { return f.depthOr(name, 0) }

func (f *fields) depthOr(name string, otherwise int64) int64 {
	n := f.whole(name, otherwise)
	if n > deepest {
		f.fail(name, "%d blocks; at most %d", n, deepest)
	}
	return min(n, deepest)
}

// llama sets RMS norms, rotary positions, grouped queries and gated linear units.
func llama(f *fields, d *transformer.Decoder) {
	d.Width, d.Inner = f.whole("hidden_size", 0), f.whole("intermediate_size", 0)
	d.Depth = f.depth("num_hidden_layers")
	d.Heads = f.whole("num_attention_heads", 0)
	d.Groups = f.whole("num_key_value_heads", d.Heads)
	d.Key = f.whole("head_dim", f.split(d.Width, d.Heads))
	d.Vocabulary = f.whole("vocab_size", 0)
	d.Longest = f.orZero("max_position_embeddings", 0)
	d.Activation, d.Gated = f.activation("hidden_act", "silu"), true
	bias := f.flag("attention_bias", false)
	d.BiasQKV, d.BiasOut, d.BiasInner = bias, bias, f.flag("mlp_bias", false)
	d.Tied = f.flag("tie_word_embeddings", false)
}

func qwen2(f *fields, d *transformer.Decoder) {
	llama(f, d)
	d.BiasQKV, d.BiasOut = true, false
}

func qwen3(f *fields, d *transformer.Decoder) {
	llama(f, d)
	d.Key = f.whole("head_dim", 128)
	d.NormHeads = true
}

func qwen2MoE(f *fields, d *transformer.Decoder) {
	qwen2(f, d)
	d.BiasQKV = f.flag("qkv_bias", true)
	f.experts(d, &transformer.Experts{
		Number: f.whole("num_experts", 60), Active: f.whole("num_experts_per_tok", 4), Inner: f.whole("moe_intermediate_size", 1408),
		SharedInner: f.whole("shared_expert_intermediate_size", 5632), SharedGate: true,
	})
}

func qwen3MoE(f *fields, d *transformer.Decoder) {
	qwen3(f, d)
	d.Key = f.whole("head_dim", f.split(d.Width, d.Heads))
	f.experts(d, &transformer.Experts{
		Number: f.whole("num_experts", 128), Active: f.whole("num_experts_per_tok", 8), Inner: f.whole("moe_intermediate_size", 768),
	})
}

func mixtral(f *fields, d *transformer.Decoder) {
	llama(f, d)
	f.experts(d, &transformer.Experts{Number: f.whole("num_local_experts", 8), Active: f.whole("num_experts_per_tok", 2), Inner: d.Inner})
}

// manyExperts bounds the number of experts of all blocks. The largest model of the
// table has 14,848.
const manyExperts = 100_000

// experts sets the experts of a decoder.
func (f *fields) experts(d *transformer.Decoder, e *transformer.Experts) {
	if e.Active > e.Number {
		f.fail("num_experts_per_tok", "%d of %d experts", e.Active, e.Number)
	}
	if e.Number*d.Depth > manyExperts {
		f.fail("num_hidden_layers", "%d blocks of %d experts; at most %d experts in all", d.Depth, e.Number, manyExperts)
	}
	d.Experts = e
}

func gemma(f *fields, d *transformer.Decoder) {
	llama(f, d)
	d.Key = f.whole("head_dim", 256)
	d.Activation = f.activation("hidden_activation", "gelu_pytorch_tanh")
	d.OffsetNorm, d.ScaledInput = true, true
	d.Tied = f.flag("tie_word_embeddings", true)
}

func gemma2(f *fields, d *transformer.Decoder) {
	gemma(f, d)
	d.Sandwich = true
	d.SoftCap = f.given("final_logit_softcapping")
	d.Unfused = f.given("attn_logit_softcapping")
}

func gemma3(f *fields, d *transformer.Decoder) {
	gemma(f, d)
	d.Sandwich, d.NormHeads = true, true
	d.SoftCap = f.given("final_logit_softcapping")
}

func phi(f *fields, d *transformer.Decoder) {
	llama(f, d)
	d.Gated, d.LayerNorm, d.Parallel, d.OneNorm, d.OrderedOut = false, true, true, true, true
	d.Activation = f.activation("hidden_act", "gelu_new")
	d.BiasQKV, d.BiasOut, d.BiasInner, d.BiasHead = true, true, true, true
	d.Projections = transformer.Projections{Q: "q_proj", K: "k_proj", V: "v_proj", Out: "dense", Up: "fc1", Down: "fc2"}
}

func phi3(f *fields, d *transformer.Decoder) {
	llama(f, d)
	d.JointQKV, d.JointGate = true, true
}

func deepseek(f *fields, d *transformer.Decoder) {
	llama(f, d)
	d.Groups = d.Heads
	d.Latent = &transformer.Latent{
		Query: f.orZero("q_lora_rank", 0), KeyValue: f.whole("kv_lora_rank", 512),
		Nope: f.whole("qk_nope_head_dim", 128), Rope: f.whole("qk_rope_head_dim", 64), Value: f.whole("v_head_dim", 128),
	}
	e := &transformer.Experts{
		Number: f.orZero("n_routed_experts", 0), Active: f.whole("num_experts_per_tok", 6), Inner: f.whole("moe_intermediate_size", 1407),
		First: f.orZero("first_k_dense_replace", 0),
	}
	e.SharedInner = e.Inner * f.orZero("n_shared_experts", 0)
	if f.text("topk_method", "") == "noaux_tc" || f.text("model_type", "") == "deepseek_v3" {
		e.Bias = e.Number // e_score_correction_bias
	}
	if e.Number > 0 {
		f.experts(d, e)
	}
}

func olmo2(f *fields, d *transformer.Decoder) {
	llama(f, d)
	d.NormWidth, d.PostNorm = true, true
}

func starcoder2(f *fields, d *transformer.Decoder) {
	llama(f, d)
	d.LayerNorm, d.Gated = true, false
	d.Activation = f.activation("hidden_act", "gelu_pytorch_tanh")
	bias := f.flag("use_bias", true)
	d.BiasQKV, d.BiasOut, d.BiasInner = bias, bias, bias
	d.Tied = f.flag("tie_word_embeddings", true)
	d.Projections = transformer.Projections{Q: "q_proj", K: "k_proj", V: "v_proj", Out: "o_proj", Up: "c_fc", Down: "c_proj"}
}

func stableLM(f *fields, d *transformer.Decoder) {
	llama(f, d)
	d.LayerNorm, d.OrderedOut = true, true
	d.BiasQKV, d.BiasOut = f.flag("use_qkv_bias", false), false
	d.Parallel = f.flag("use_parallel_residual", false)
	d.OneNorm = d.Parallel
}

func neoX(f *fields, d *transformer.Decoder) {
	llama(f, d)
	d.LayerNorm, d.Gated, d.JointQKV, d.OrderedOut = true, false, true, true
	d.Activation = f.activation("hidden_act", "gelu")
	d.Parallel = f.flag("use_parallel_residual", true)
	bias := f.flag("attention_bias", true)
	d.BiasQKV, d.BiasOut, d.BiasInner = bias, bias, true
	d.Projections = transformer.Projections{QKV: "query_key_value", Out: "dense", Up: "dense_h_to_4h", Down: "dense_4h_to_h"}
}

// opt has a table with two rows more than positions.
func opt(f *fields, d *transformer.Decoder) {
	d.Width, d.Inner = f.whole("hidden_size", 768), f.whole("ffn_dim", 3072)
	d.Depth = f.depth("num_hidden_layers")
	f.heads(&d.Block, "num_attention_heads", 12)
	d.Vocabulary = f.whole("vocab_size", 50272)
	d.Longest = f.whole("max_position_embeddings", 2048)
	d.Positions = d.Longest + 2
	d.LayerNorm, d.Dropout, d.CopiesHeads = true, true, true
	d.Activation = f.activation("activation_function", "relu")
	bias := f.flag("enable_bias", true)
	d.BiasQKV, d.BiasOut, d.BiasInner = bias, bias, bias
	d.Tied = f.flag("tie_word_embeddings", true)
	if p := f.whole("word_embed_proj_dim", d.Width); p != d.Width {
		d.Outer = p
	}
	d.SumNorm = !f.flag("do_layer_norm_before", true)
	d.Projections = transformer.Projections{Q: "q_proj", K: "k_proj", V: "v_proj", Out: "out_proj", Up: "fc1", Down: "fc2"}
}

func gpt2(f *fields, d *transformer.Decoder) {
	d.Width = f.whole("n_embd", 768)
	d.Inner = f.whole("n_inner", 4*d.Width)
	d.Depth = f.depth("n_layer")
	f.heads(&d.Block, "n_head", 12)
	d.Vocabulary = f.whole("vocab_size", 50257)
	d.Positions = f.whole("n_positions", 1024)
	d.LayerNorm, d.Dropout, d.JointQKV = true, f.number("resid_pdrop", 0.1) > 0, true
	d.Activation = f.activation("activation_function", "gelu_new")
	d.BiasQKV, d.BiasOut, d.BiasInner, d.Tied = true, true, true, f.flag("tie_word_embeddings", true)
	d.Projections = transformer.Projections{QKV: "c_attn", Out: "c_proj", Up: "c_fc", Down: "c_proj"}
}

// neo has attention as separate operations, alternately over all tokens and over the last
// ones. Each block has its own mask table.
func neo(f *fields, d *transformer.Decoder) {
	d.Width = f.whole("hidden_size", 2048)
	d.Inner = f.whole("intermediate_size", 4*d.Width)
	d.Depth = f.depth("num_layers")
	f.heads(&d.Block, "num_heads", 16)
	d.Vocabulary = f.whole("vocab_size", 50257)
	d.Positions = f.whole("max_position_embeddings", 2048)
	d.Masks = d.Positions * d.Positions
	d.LayerNorm, d.Single, d.Dropout = true, true, f.number("resid_dropout", 0) > 0
	d.Activation = f.activation("activation_function", "gelu_new")
	d.BiasOut, d.BiasInner, d.Tied = true, true, f.flag("tie_word_embeddings", true)
	d.Projections = transformer.Projections{Q: "q_proj", K: "k_proj", V: "v_proj", Out: "out_proj", Up: "c_fc", Down: "c_proj"}
}
