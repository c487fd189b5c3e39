package described

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"carma/configs/models"
	"carma/estimator/networks/hf"
	"carma/estimator/networks/zoo"
)

const qwen = `{"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "hidden_size": 896, "intermediate_size": 4864,
	"num_hidden_layers": 24, "num_attention_heads": 14, "num_key_value_heads": 2, "vocab_size": 151936, "tie_word_embeddings": true,
	"max_position_embeddings": 32768, "transformers_version": "4.40.1", "id2label": {"0": "LABEL_0", "1": "LABEL_1"}}`

// The description of a config.json makes the same network, with the same settings, and
// has no field that does not matter.
func TestOfConfig(t *testing.T) {
	d, err := OfConfig([]byte(qwen), nil, models.Overrides{})
	if err != nil {
		t.Fatal(err)
	}
	if s := string(d); strings.Contains(s, "LABEL_0") || strings.Contains(s, "transformers_version") || !json.Valid(d) {
		t.Errorf("%s", d)
	}
	o := models.Overrides{Batch: 4, Sequence: 512, LoRA: 8, Precision: models.BF16}
	want, err := hf.Read("small", []byte(qwen), o)
	if err != nil {
		t.Fatal(err)
	}
	c, kind, err := Read("small", d, o)
	if err != nil || c.Hash() != want.Hash() || kind != "qwen2" || c.Name != "small" {
		t.Errorf("%v %q %v", c, kind, err)
	}
}

// A network of layers is packed, and unpacked as it was.
func TestOfLayers(t *testing.T) {
	want, err := zoo.Build("resnet50", models.Overrides{Batch: 8})
	if err != nil {
		t.Fatal(err)
	}
	d, err := OfLayers(want)
	if err != nil {
		t.Fatal(err)
	}
	if d[0] != '"' || len(d) > 16<<10 {
		t.Errorf("%d bytes: %.40s", len(d), d)
	}
	c, kind, err := Read("mine", d, models.Overrides{})
	if err != nil || c.Hash() != want.Hash() || kind != "" || c.Name != "mine" {
		t.Errorf("%q %v", kind, err)
	}
	if c, _, err = Read("mine", d, models.Overrides{Batch: 64, Precision: models.AMP}); err != nil || c.Train.Batch != 64 || c.Train.Precision != models.AMP {
		t.Errorf("%v", err)
	}
	if _, _, err = Read("mine", d, models.Overrides{Image: 64}); err == nil {
		t.Error("fixed layers have got another size")
	}
}

// The summary of a config.json's weights is sent in few bytes, and does not change how
// its layers are found. A field of that name in the file itself does not count.
func TestWeights(t *testing.T) {
	w := &Weights{File: "model.safetensors", Types: []Stored{{"BF16", 16, 494032768}, {"F32", 32, 24}}}
	forged := strings.Replace(qwen, "{", `{"safetensors": {"types": []},`, 1)
	for text, weights := range map[string]*Weights{qwen: w, forged: w, forged + " ": nil} {
		d, err := OfConfig([]byte(text), weights, models.Overrides{})
		if err != nil {
			t.Fatal(err)
		}
		plain, err := OfConfig([]byte(qwen), nil, models.Overrides{})
		if err != nil || len(d) > len(plain)+200 {
			t.Errorf("%d bytes, without weights %d: %v", len(d), len(plain), err)
		}
		c, kind, err := Read("small", d, models.Overrides{})
		if err != nil {
			t.Fatal(err)
		}
		want, said := "qwen2 stored as 494032768 BF16, 24 F32", "model.safetensors has 494032792 parameters, the network of its config.json 494032768 (-0.00 %)"
		if weights == nil {
			want, said = "qwen2", ""
		}
		if got := strings.Join(c.Warnings, "; "); kind != want || got != said {
			t.Errorf("%q, %q; want %q, %q", kind, got, want, said)
		}
	}
}

func zipped(t testing.TB, object []byte) json.RawMessage {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(object)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	d, _ := json.Marshal(base64.StdEncoding.EncodeToString(b.Bytes()))
	return d
}

func TestRefused(t *testing.T) {
	for name, c := range map[string]struct {
		d    json.RawMessage
		want string
	}{
		"nothing":       {nil, ""},
		"null":          {json.RawMessage(`null`), ""},
		"a list":        {json.RawMessage(`[1]`), ""},
		"no object":     {json.RawMessage(`7`), ""},
		"no base64":     {json.RawMessage(`"%%%"`), "not base64"},
		"no gzip":       {json.RawMessage(`"aGVsbG8="`), "not gzip"},
		"cut off":       {zipped(t, []byte(qwen))[:200], ""},
		"unknown model": {json.RawMessage(`{"model_type":"qwen22"}`), `"qwen22" is not known here; the nearest: qwen2`},
		"one field":     {json.RawMessage(`{"model_type":"qwen2","hidden_size":"wide"}`), "hidden_size"},
		"no types":      {json.RawMessage(`{"model_type":"qwen2","safetensors":{"file":"x"}}`), "safetensors: 0 types; give 1 to 64"},
		"no bits":       {json.RawMessage(`{"model_type":"qwen2","safetensors":{"types":[{"parameters":1}]}}`), "safetensors: types[0]: 0 bits; give 1 to 64"},
		"too many":      {json.RawMessage(`{"model_type":"qwen2","safetensors":{"types":[{"bits":4,"parameters":1},{"bits":8,"parameters":9223372036854775807}]}}`), "safetensors: types[1]: 9223372036854775807 parameters"},
		"other weights": {json.RawMessage(`{"model_type":"qwen2","safetensors":"model.safetensors"}`), "safetensors: not as carma run makes it"},
		"large":         {json.RawMessage(`"` + strings.Repeat("a", Most) + `"`), "at most 64 KiB travel"},
		"a bomb":        {zipped(t, bytes.Repeat([]byte(" "), mostUnpacked+1)), "larger than 8 MiB unpacked"},
	} {
		_, _, err := Read("x", c.d, models.Overrides{})
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(qwen))
	f.Add([]byte(zipped(f, []byte(qwen))))
	f.Add([]byte(`{"schema":1,"name":"a","family":"mlp","train":{"batch":1},"inputs":[{"shape":[4]}],"layers":[{"type":"linear","out":[2],"params":[8,2]}]}`))
	f.Add([]byte(`"H4sIAAAAAAAA"`))
	f.Add([]byte(`{"model_type":"gpt2","safetensors":{"file":"model.safetensors","types":[{"type":"4 bits (GPTQ)","bits":4,"parameters":7}]}}`))
	f.Fuzz(func(t *testing.T, d []byte) {
		c, _, err := Read("x", d, models.Overrides{Batch: 2})
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("%q", err)
			}
			return
		}
		if err := c.Validate(); err != nil {
			t.Error(err)
		}
	})
}
