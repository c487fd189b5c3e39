package hf

import (
	"fmt"
	"strings"

	"carma/configs/models"
	"carma/internal/suggest"
)

// unknown returns the error for an unknown architecture. The error estimates the number of
// parameters from the fields, because it bounds the memory.
func (f *fields) unknown(kind string) error {
	if kind == "" {
		return wrong("model_type", "missing; it names the architecture, for example llama")
	}
	bound := "--params and --family"
	inner := f
	if part, ok := f.part("text_config"); ok {
		inner = part
	}
	if n := inner.roughly(); n > 0 {
		bound = fmt.Sprintf("--params %s --family transformer, as its fields make about so many", figure(n))
	}
	return wrong("model_type", "%s is not known here; the nearest: %s. Or say %s; or run the program itself (carma estimate --probe)",
		models.Short(kind), strings.Join(suggest.Names(kind, Kinds(), 3), ", "), bound)
}

// roughly returns the number of parameters of a Transformer with these fields, from the
// matrices of its blocks and its tables of tokens, or 0 if fields are missing.
func (f *fields) roughly() float64 {
	width := f.first("hidden_size", "d_model", "n_embd", "dim")
	depth := f.first("num_hidden_layers", "n_layer", "num_layers", "n_layers")
	if width == 0 || depth == 0 {
		return 0
	}
	heads := max(f.first("num_attention_heads", "n_head", "num_heads", "n_heads"), 1)
	groups, key := f.first("num_key_value_heads"), f.first("head_dim")
	if groups == 0 {
		groups = heads
	}
	if key == 0 {
		key = width / heads
	}
	inner := f.first("intermediate_size", "d_ff", "ffn_dim", "n_inner")
	if inner == 0 {
		inner = 4 * width
	}
	matrices := 2.0
	if word, _ := f.value("hidden_act"); word == "silu" || word == "swish" {
		matrices = 3 // gated
	}
	if experts := f.first("num_experts", "num_local_experts", "n_routed_experts"); experts > 0 {
		if each := f.first("moe_intermediate_size"); each > 0 {
			inner = each
		}
		inner *= experts
	}
	tables := 2.0
	if tied, _ := f.value("tie_word_embeddings"); tied == true {
		tables = 1
	}
	return depth*(2*width*(heads+groups)*key+matrices*width*inner) + tables*f.first("vocab_size")*width
}

// first returns the first of the fields that is a number, or 0 if none is.
func (f *fields) first(names ...string) float64 {
	for _, name := range names {
		if !f.given(name) {
			continue
		}
		probe := &fields{values: f.values}
		if n := probe.orZero(name, 0); probe.err == nil && n > 0 {
			return float64(n)
		}
	}
	return 0
}

// figure formats a rounded number of parameters for --params.
func figure(n float64) string {
	if n >= 1e9 {
		return fmt.Sprintf("%.3gB", n/1e9)
	}
	return fmt.Sprintf("%.3gM", n/1e6)
}
