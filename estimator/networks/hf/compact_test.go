package hf

import (
	"encoding/json"
	"strings"
	"testing"

	"carma/configs/models"
)

// TestCompact: each configuration of the table makes the same network by the fields
// that are kept.
func TestCompact(t *testing.T) {
	for _, m := range table() {
		if m.Catalogue != "" {
			continue
		}
		var all map[string]any
		if err := json.Unmarshal(m.Config, &all); err != nil {
			t.Fatal(err)
		}
		all["id2label"] = map[string]string{"0": strings.Repeat("label", 1000)}
		all["transformers_version"] = "5.0"
		text, err := json.Marshal(all)
		if err != nil {
			t.Fatal(err)
		}
		o := models.Overrides{Batch: 2}
		short, err := Compact(text, o)
		if err != nil {
			t.Errorf("%s: %v", m.Names[0], err)
			continue
		}
		if len(short) > 1000 || strings.Contains(string(short), "transformers_version") {
			t.Errorf("%s: %d bytes are kept: %.300s", m.Names[0], len(short), short)
		}
		want, err := Read("a", text, o)
		if err != nil {
			t.Fatal(err)
		}
		if c, err := Read("a", short, o); err != nil || c.Hash() != want.Hash() {
			t.Errorf("%s: another network, %v", m.Names[0], err)
		}
	}
}

func TestCompactOfImagesAndText(t *testing.T) {
	text := `{"model_type":"gemma3","vision_config":{"hidden_size":1152},"text_config":{"model_type":"gemma3_text","hidden_size":2560,"intermediate_size":10240,
		"num_hidden_layers":34,"num_attention_heads":8,"num_key_value_heads":4,"vocab_size":262208,"rope_scaling":{"factor":8}}}`
	short, err := Compact([]byte(text), models.Overrides{})
	if err != nil || strings.Contains(string(short), "rope_scaling") || !strings.Contains(string(short), "text_config") {
		t.Fatalf("%s, %v", short, err)
	}
	if Kind(short) == "" || Kind([]byte("{")) != "" {
		t.Errorf("%q", Kind(short))
	}
}
