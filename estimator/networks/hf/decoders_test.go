package hf

import (
	"fmt"
	"testing"

	"carma/configs/models"
)

// TestSmallDecoders: small models have the library's numbers of parameters (transformers
// 5.23.0, made by AutoModelForCausalLM on the meta device; of the text parts of models of
// images, the text model and a head).
func TestSmallDecoders(t *testing.T) {
	for _, c := range []struct {
		kind, more string
		want       int64
	}{
		{"olmo3", `"tie_word_embeddings": false`, 2185920},
		{"ministral3", `"tie_word_embeddings": false`, 3659520},
		{"seed_oss", `"tie_word_embeddings": false`, 3664128},
		{"ernie4_5", `"tie_word_embeddings": true`, 3403520},
		{"glm", `"tie_word_embeddings": false`, 3664128},
		{"glm4", `"tie_word_embeddings": false`, 3665664},
		{"gpt_oss", `"num_local_experts": 8, "num_experts_per_tok": 2, "tie_word_embeddings": false`, 10974000},
		{"qwen2_vl_text", `"tie_word_embeddings": false`, 2186112},
		{"qwen2_5_vl_text", `"tie_word_embeddings": false`, 2186112},
		{"qwen3_vl_text", `"tie_word_embeddings": false`, 3660288},
		{"qwen3_vl_moe_text", `"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 128, "tie_word_embeddings": true`, 3114944},
	} {
		text := fmt.Sprintf(`{"model_type": %q, "hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 3, "num_attention_heads": 8, "num_key_value_heads": 2, "vocab_size": 1000, %s}`, c.kind, c.more)
		got, err := Read("x", []byte(text), models.Overrides{Sequence: 64})
		if err != nil {
			t.Errorf("%s: %v", c.kind, err)
			continue
		}
		if n := got.Params(); n != c.want {
			t.Errorf("%s has %d parameters, want %d (%+d)", c.kind, n, c.want, n-c.want)
		}
	}
}
