package hf

import (
	"strings"
	"testing"

	"carma/configs/models"
)

// TestUnknown: the message about an unknown model has a parameter count from its fields,
// near the real model's.
func TestUnknown(t *testing.T) {
	llama := `"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256, "hidden_act": "silu"`
	for text, want := range map[string]string{
		`{"model_type": "nonesuch", ` + llama + `}`:                    "--params 8.03B --family transformer",
		`{"model_type": "nonesuch", "text_config": {` + llama + `}}`:   "--params 8.03B --family transformer",
		`{"model_type": "nonesuch", "d_model": 768, "n_layer": 12}`:    "--params 84.9M --family transformer",
		`{"model_type": "nonesuch", "hidden_size": 768}`:               "Or say --params and --family; or run the program itself",
		`{"model_type": "nonesuch", "hidden_size": "x", "n_layer": 1}`: "Or say --params and --family; or run the program itself",
	} {
		_, err := Read("x", []byte(text), models.Overrides{})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `"nonesuch" is not known here`) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
