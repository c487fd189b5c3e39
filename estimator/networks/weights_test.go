package networks

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"carma/configs/models"
)

const tinyLlama = `{"model_type": "llama", "hidden_size": 8, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "vocab_size": 10, "max_position_embeddings": 64}`

// The network has 2 x 80 + 4 x 64 + 3 x 128 + 3 x 8 = 824 parameters.
const tinyHeader = `{"model.embed_tokens.weight": {"dtype": "BF16", "shape": [10, 8], "data_offsets": [0, 160]}, "rest": {"dtype": "F32", "shape": [744], "data_offsets": [160, 3136]}}`

func folder(t *testing.T, header string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tiny[1]")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	weights := append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...)
	for name, data := range map[string][]byte{"config.json": []byte(tinyLlama), "model.safetensors": append(weights, make([]byte, 3136)...)} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestWeightsBesideAConfiguration checks that a warning is given only if the numbers of
// parameters differ.
func TestWeightsBesideAConfiguration(t *testing.T) {
	for _, c := range []struct{ header, want string }{
		{tinyHeader, ""},
		{strings.Replace(tinyHeader, `[744], "data_offsets": [160, 3136]`, `[700], "data_offsets": [160, 2960]`, 1), "model.safetensors has 780 parameters, the network of its config.json 824 (+5.64 %)"},
		{strings.Replace(tinyHeader, `"F32", "shape": [744]`, `"U8", "shape": [2976]`, 1) + " ", "model.safetensors has 80 parameters"},
	} {
		dir := folder(t, c.header)
		for _, ref := range []string{dir, filepath.Join(dir, "model.safetensors")} {
			for _, o := range []models.Overrides{{}, {LoRA: 2}} {
				got, err := Find(ref, o)
				if err != nil {
					t.Fatal(err)
				}
				if said := strings.Join(got.Warnings, "; "); c.want == "" && said != "" || !strings.Contains(said, c.want) {
					t.Errorf("%s: %q, want %q", ref, said, c.want)
				}
			}
		}
	}
}

func TestWeightsAlone(t *testing.T) {
	dir := folder(t, tinyHeader)
	if got := WeightsAlone(dir); got != "" {
		t.Errorf("%s is not alone", got)
	}
	if err := os.Remove(filepath.Join(dir, "config.json")); err != nil {
		t.Fatal(err)
	}
	want := filepath.Join(dir, "model.safetensors")
	if got := WeightsAlone(dir); got != want {
		t.Errorf("%q, want %s", got, want)
	}
	if _, err := Find(want, models.Overrides{}); err == nil || !strings.Contains(err.Error(), "safetensors files have no layers") {
		t.Error(err)
	}
	if got := WeightsAlone("resnet50"); got != "" {
		t.Errorf("%s for a name", got)
	}
}
