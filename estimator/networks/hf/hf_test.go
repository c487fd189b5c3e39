package hf

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"carma/configs/models"
)

// TestParameters: each model of the table has the parameters that its page shows.
func TestParameters(t *testing.T) {
	for _, m := range table() {
		c, err := Build(m.Names[0], models.Overrides{})
		if err != nil {
			t.Errorf("%s: %v", m.Names[0], err)
			continue
		}
		if err := c.Validate(); err != nil {
			t.Errorf("%s: %v", m.Names[0], err)
		}
		if got := c.Params(); got != m.Params {
			t.Errorf("%s has %d parameters, want %d (%+d)", m.Names[0], got, m.Params, got-m.Params)
		}
		if m.Catalogue != "" {
			continue
		}
		family := models.Transformer
		if kind := Kind(m.Config); kind == "resnet" || strings.HasPrefix(kind, "convnext") {
			family = models.Conv
		} else if kind == "detr" {
			family = models.Detection
		}
		if len(c.Warnings) > 0 || c.Origin != models.FromHF || c.Family != family {
			t.Errorf("%s: %q %s %s", m.Names[0], c.Warnings, c.Origin, c.Family)
		}
	}
}

// trainable returns the number of trained parameters.
func trainable(c *models.Config) (n int64) {
	for i := range c.Layers {
		if l := &c.Layers[i]; !l.Frozen && !l.Tied {
			for _, p := range l.Params {
				n += p
			}
		}
	}
	return n
}

// TestAdapters: the number of trained parameters equals PEFT's.
func TestAdapters(t *testing.T) {
	for _, c := range []struct {
		model   string
		rank    int
		targets []string
		want    int64
	}{
		{"meta-llama/Llama-3.1-8B", 8, nil, 3407872},
		{"meta-llama/Llama-3.1-8B", 16, []string{"all-linear"}, 41943040},
		{"meta-llama/Llama-3.1-8B", 16, []string{"q_proj", "k_proj", "v_proj", "o_proj"}, 13631488},
		{"meta-llama/Llama-2-7b-hf", 8, nil, 4194304},
		{"openai-community/gpt2", 8, nil, 294912},
	} {
		got, err := Build(c.model, models.Overrides{LoRA: c.rank, Targets: c.targets})
		if err != nil {
			t.Fatal(err)
		}
		if n := trainable(got); n != c.want {
			t.Errorf("%s, rank %d, %v: %d parameters are trained, want %d", c.model, c.rank, c.targets, n, c.want)
		}
	}
}

func TestQuantized(t *testing.T) {
	c, err := Build("meta-llama/Llama-3.1-8B", models.Overrides{LoRA: 16, Targets: []string{"all-linear"}, Bits: 4})
	if err != nil {
		t.Fatal(err)
	}
	bits := map[int]int64{}
	for i := range c.Layers {
		for _, p := range c.Layers[i].Params {
			bits[c.Layers[i].Bits] += p
		}
	}
	// The 6,979,321,856 numbers of the matrices in the blocks; tables, head and norms stay.
	if bits[4] != 6979321856 || bits[32] != 41943040 || bits[0] != 8030261248-6979321856 {
		t.Errorf("numbers by their bits: %v", bits)
	}
	if c.Train.Precision != models.AMP {
		t.Errorf("precision %s", c.Train.Precision)
	}
}

const small = `{"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 100, "max_position_embeddings": 512}`

// with returns the small configuration with other values.
func with(t *testing.T, changes string) string {
	t.Helper()
	var all, more map[string]any
	for text, to := range map[string]*map[string]any{small: &all, changes: &more} {
		if err := json.Unmarshal([]byte(text), to); err != nil {
			t.Fatal(err)
		}
	}
	for k, v := range more {
		all[k] = v
	}
	out, _ := json.Marshal(all)
	return string(out)
}

func TestWrongConfigurations(t *testing.T) {
	for _, c := range []struct{ changes, want string }{
		{`{"model_type": "lama"}`, `model_type: "lama" is not known here; the nearest: llama`},
		{`{"model_type": null}`, "model_type: missing"},
		{`{"model_type": 3}`, "model_type: it is a text"},
		{`{"hidden_size": null}`, "hidden_size: missing"},
		{`{"hidden_size": 0}`, "hidden_size: 0; it is 1 to"},
		{`{"hidden_size": "64"}`, "hidden_size: it is a whole number"},
		{`{"hidden_size": 64.5}`, "hidden_size: 64.5 is no whole number"},
		{`{"hidden_size": 1e300}`, "hidden_size: 1e+300 is no whole number from 0 to 1048576"},
		{`{"hidden_size": -4}`, "hidden_size: -4 is no whole number"},
		{`{"num_hidden_layers": 100000}`, "num_hidden_layers: 100000 blocks; at most 2000"},
		{`{"num_key_value_heads": 3}`, "num_key_value_heads: 3 does not divide the 4 heads"},
		{`{"num_attention_heads": 128}`, "num_attention_heads: 128 heads do not fit into a width of 64"},
		{`{"hidden_act": "cosine"}`, `hidden_act: "cosine" is no known activation`},
		{`{"tie_word_embeddings": 1}`, "tie_word_embeddings: it is true or false"},
		{`{"model_type": "mixtral", "num_experts_per_tok": 9}`, "num_experts_per_tok: 9 of 8 experts"},
		{`{"model_type": "gpt2", "n_embd": 64, "n_head": 4, "n_layer": 2, "resid_pdrop": -1}`, "resid_pdrop: it is a number of at least 0"},
		{`{"model_type": "beit", "image_size": 8}`, "patch_size: 16 is larger than the image of 8"},
		{`{"model_type": "beit", "image_size": [224, 192]}`, "image_size: it is one number, or a list of two equal ones"},
		{`{"model_type": "swin", "image_size": []}`, "image_size: it is one number, or a list of two"},
		{`{"model_type": "vit", "image_size": [[224], [224]]}`, "image_size: it is a whole number"},
		{`{"model_type": "vit", "image_size": [224, 224, 224]}`, "image_size: it is one number, or a list of two"},
		{`{"model_type": "sam", "vision_config": {"image_size": ["1024", "1024"]}}`, "vision_config.image_size: it is a whole number"},
		{`{"model_type": "beit", "use_relative_position_bias": 1}`, "use_relative_position_bias: it is true or false"},
		{`{"model_type": "dinov3_vit", "num_register_tokens": -1}`, "num_register_tokens: -1 is no whole number"},
		{`{"model_type": "convnext", "depths": [3, 3]}`, "hidden_sizes: 4 stages, depths has 2; at most 8"},
		{`{"model_type": "convnextv2", "depths": [3, 3, 900, 3]}`, "depths: 900 blocks; at most 250"},
		{`{"model_type": "convnext", "num_stages": 3}`, "num_stages: 3, depths has 4"},
		{`{"model_type": "resnet", "layer_type": "wide"}`, `layer_type: "wide"; it is basic or bottleneck`},
		{`{"model_type": "resnet", "hidden_sizes": "64"}`, "hidden_sizes: it is a list"},
		{`{"model_type": "detr", "backbone": "resnet60"}`, `backbone: "resnet60" is not known here; the nearest: resnet50, `},
		{`{"model_type": "detr", "backbone_config": 3}`, "backbone_config: it is an object"},
		{`{"model_type": "detr", "backbone_config": {"model_type": "resnet", "depths": [3]}}`, "backbone_config.hidden_sizes: 4 stages, depths has 1"},
		{`{"model_type": "detr", "backbone_config": {"model_type": "vit"}}`, `backbone_config.model_type: "vit" is not known here; it is resnet`},
		{`{"model_type": "detr", "use_timm_backbone": false}`, "backbone_config: missing; "},
		{`{"model_type": "detr", "encoder_attention_heads": 7}`, "encoder_attention_heads: 7 heads do not divide a width of 256"},
		{`{"model_type": "detr", "position_embedding_type": "none"}`, `position_embedding_type: "none"; it is sine or learned`},
		{`{"model_type": "mask2former", "num_attention_heads": 7}`, "num_attention_heads: 7 heads do not divide widths of 256 (feature_size)"},
		{`{"model_type": "mask2former", "common_stride": 2}`, "common_stride: 2; it is 4 or 8"},
		{`{"model_type": "mask2former", "backbone_config": {"model_type": "dinat"}}`, `backbone_config.model_type: "dinat" is not known here; it is swin`},
		{`{"model_type": "mask2former", "backbone_config": {"window_size": 100}}`, "backbone_config.window_size: 100 pixels; at most 64"},
		{`{"model_type": "sam", "vision_config": 3}`, "vision_config: it is an object"},
		{`{"model_type": "sam", "vision_config": {"global_attn_indexes": [-1]}}`, "vision_config.global_attn_indexes: -1 is no block from 0 to 1999"},
		{`{"model_type": "sam", "vision_config": {"output_channels": 64}}`, "vision_config.output_channels: 64; it is the same as hidden_size of the decoder (256)"},
		{`{"model_type": "sam", "mask_decoder_config": {"num_attention_heads": 7}}`, "mask_decoder_config.num_attention_heads: 7 heads do not divide a width of 128"},
		{`{"model_type": "sam2", "vision_config": {"backbone_config": {"blocks_per_stage": [1, 2]}}}`, "vision_config.backbone_config.embed_dim_per_stage: 4 stages, blocks_per_stage has 2; both have 4"},
		{`{"model_type": "sam2", "vision_config": {"backbone_config": {"image_size": [1024, 512]}}}`, "vision_config.backbone_config.image_size: [1024 512]; both sides are the same here"},
		{`{"model_type": "sam2", "vision_config": {"backbone_config": {"patch_padding": 1}}}`, "vision_config.backbone_config.patch_kernel_size: 7 with a padding of 1; patches cover the image once"},
		{`{"model_type": "sam2_video", "vision_config": {"num_feature_levels": 4}}`, "vision_config.num_feature_levels: 4; the decoder takes 3"},
	} {
		_, err := Read("x", []byte(with(t, c.changes)), models.Overrides{})
		fault, ok := errors.AsType[*models.Error](err)
		if !ok || !strings.HasPrefix(fault.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.changes, err, c.want)
		}
	}
	for text, want := range map[string]string{"{": "not JSON", "null": "null;", "[]": "not JSON", strings.Repeat(" ", MaxFile+1): "larger than 1 MiB"} {
		if _, err := Read("x", []byte(text), models.Overrides{}); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%.10s: %v, want %s", text, err, want)
		}
	}
	for _, c := range []struct {
		o    models.Overrides
		want string
	}{
		{models.Overrides{Sequence: 1024}, "a sequence of 1024 is longer than its 512 positions"},
		{models.Overrides{LoRA: 4, Targets: []string{"query"}}, "has no layer query for adapters (LoRA); it has down_proj, gate_proj, k_proj"},
		{models.Overrides{Targets: []string{"q_proj"}}, "layers for adapters are named, but no rank"},
		{models.Overrides{Bits: 4}, "weights of 4 bits are not trained; train adapters (LoRA)"},
	} {
		if _, err := Read("x", []byte(small), c.o); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %s", c.o, err, c.want)
		}
	}
}

// TestTextConfig checks that only the language model of a model for images and text is read,
// with a warning.
func TestTextConfig(t *testing.T) {
	c, err := Read("x", []byte(`{"model_type": "gemma3", "vision_config": {}, "text_config": `+with(t, `{"model_type": "gemma3_text"}`)+`}`), models.Overrides{})
	if err != nil || len(c.Warnings) != 1 || !strings.Contains(c.Warnings[0], "only the language model of gemma3") {
		t.Errorf("%v %v", c, err)
	}
}

// TestSquares: sizes of images and patches may be lists of a height and a width.
func TestSquares(t *testing.T) {
	for _, kind := range []string{"vit", "deit", "beit", "dinov2", "dinov3_vit", "swin", "convnext"} {
		text := `{"model_type": "` + kind + `", "image_size": `
		one, err := Read("x", []byte(text+`192, "patch_size": 8}`), models.Overrides{})
		if err != nil {
			t.Fatal(kind, err)
		}
		two, err := Read("x", []byte(text+`[192, 192], "patch_size": [8, 8]}`), models.Overrides{})
		if err != nil || two.Hash() != one.Hash() {
			t.Errorf("%s: %v, another network with lists", kind, err)
		}
		other, err := Read("x", []byte(text+`[96], "patch_size": 8}`), models.Overrides{})
		if err != nil || other.Hash() == one.Hash() {
			t.Errorf("%s: %v, the same network with half the side", kind, err)
		}
	}
}

func TestRecognized(t *testing.T) {
	for text, want := range map[string]bool{
		small: true, `{"architectures": ["LlamaForCausalLM"]}`: true, `{"schema": 1, "name": "x", "layers": []}`: false, `{}`: false, "x": false, "": false,
	} {
		if got := Recognized([]byte(text)); got != want {
			t.Errorf("%s: %t", text, got)
		}
	}
}

// FuzzRead checks that for any file the result is a valid network or an error of one line.
func FuzzRead(f *testing.F) {
	for _, text := range []string{small, smallUNet, smallFlux, smallSD3, smallVAE} {
		f.Add([]byte(text))
	}
	for _, m := range table() {
		if m.Params < 2e9 && m.Catalogue == "" {
			f.Add([]byte(m.Config))
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := Read("x", text, models.Overrides{})
		switch {
		case err != nil && strings.ContainsAny(err.Error(), "\n\r"):
			t.Errorf("not one line: %q", err)
		case err == nil:
			_ = c.Validate() // may be too large, but does not panic
		}
	})
}
