package hf

import (
	"errors"
	"strings"
	"testing"

	"carma/configs/models"
)

const (
	smallUNet = `{"_class_name": "UNet2DConditionModel", "sample_size": 64, "cross_attention_dim": 768}`
	smallFlux = `{"_class_name": "FluxTransformer2DModel"}`
	smallSD3  = `{"_class_name": "SD3Transformer2DModel", "num_layers": 24, "num_attention_heads": 24, "caption_projection_dim": 1536, "pos_embed_max_size": 384, "qk_norm": "rms_norm", "dual_attention_layers": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]}`
	smallVAE  = `{"_class_name": "AutoencoderKL", "block_out_channels": [128, 256, 512, 512], "layers_per_block": 2}`
)

// TestDiffusers: a configuration has the parameters of the library's own class
// (diffusers 0.42.1, counted on the meta device).
func TestDiffusers(t *testing.T) {
	for text, want := range map[string]int64{
		smallUNet: 859520964,
		`{"_class_name": "UNet2DConditionModel", "sample_size": 128, "block_out_channels": [320, 640, 1280], "cross_attention_dim": 2048,
		  "attention_head_dim": [5, 10, 20], "down_block_types": ["DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"],
		  "up_block_types": ["CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"], "transformer_layers_per_block": [1, 2, 10],
		  "use_linear_projection": true, "addition_embed_type": "text_time", "projection_class_embeddings_input_dim": 2816}`: 2567463684,
		smallFlux: 11891178560,
		`{"_class_name": "SD3Transformer2DModel", "num_layers": 38, "num_attention_heads": 38, "caption_projection_dim": 2432, "pos_embed_max_size": 192, "qk_norm": "rms_norm"}`: 8056627520,
		smallSD3: 2243171520,
		smallVAE: 83653863,
	} {
		if !Recognized([]byte(text)) {
			t.Errorf("%.60s is not recognized", text)
		}
		c, err := Read("x", []byte(text), models.Overrides{})
		if err != nil {
			t.Error(err)
			continue
		}
		if err := c.Validate(); err != nil {
			t.Error(err)
		}
		if got := c.TrainableParams(); got != want {
			t.Errorf("%.60s has %d parameters that are trained, want %d", text, got, want)
		}
	}
}

func TestWrongDiffusers(t *testing.T) {
	for text, want := range map[string]string{
		`{"_class_name": "UNet2DModel"}`: `_class_name: "UNet2DModel" is not known here; the nearest:`,
		`{"_class_name": 4}`:             "_class_name: it is a text",
		`{"_class_name": "UNet2DConditionModel", "block_out_channels": []}`:                                     "block_out_channels: 0 numbers",
		`{"_class_name": "UNet2DConditionModel", "block_out_channels": [8, 1.5]}`:                               "block_out_channels: 1.5 is no whole number",
		`{"_class_name": "UNet2DConditionModel", "block_out_channels": [320, 640]}`:                             "down_block_types: missing",
		`{"_class_name": "UNet2DConditionModel", "attention_head_dim": [8, 8]}`:                                 "attention_head_dim: 2 numbers",
		`{"_class_name": "UNet2DConditionModel", "attention_head_dim": 7}`:                                      "attention_head_dim: 7 heads do not divide 320 channels",
		`{"_class_name": "UNet2DConditionModel", "down_block_types": ["A", "B", "C", "D"]}`:                     `down_block_types: "A" is not known here`,
		`{"_class_name": "UNet2DConditionModel", "layers_per_block": 1000}`:                                     "layers_per_block: 1000 layers; at most 64",
		`{"_class_name": "UNet2DConditionModel", "transformer_layers_per_block": 65}`:                           "transformer_layers_per_block: 65 blocks; at most 64",
		`{"_class_name": "UNet2DConditionModel", "addition_embed_type": "image"}`:                               `addition_embed_type: "image" is not known here`,
		`{"_class_name": "FluxTransformer2DModel", "num_layers": 3000}`:                                         "num_layers: 3000 blocks; at most 2000",
		`{"_class_name": "FluxTransformer2DModel", "in_channels": 16}`:                                          "in_channels: 16; 64 is known here",
		`{"_class_name": "SD3Transformer2DModel", "num_layers": 2}`:                                             "",
		`{"_class_name": "SD3Transformer2DModel", "num_layers": 2, "caption_projection_dim": 8}`:                "caption_projection_dim: 8; it is heads x attention_head_dim, 1152",
		`{"_class_name": "SD3Transformer2DModel", "num_layers": 2, "dual_attention_layers": [1]}`:               "dual_attention_layers: it is a list 0, 1, 2",
		`{"_class_name": "SD3Transformer2DModel"}`:                                                              "num_layers: missing",
		`{"_class_name": "AutoencoderKL", "block_out_channels": [64], "down_block_types": ["AttnDownBlock2D"]}`: `down_block_types: "AttnDownBlock2D" is not known here`,
	} {
		_, err := Read("x", []byte(text), models.Overrides{})
		if want == "" {
			if err != nil {
				t.Errorf("%s: %v", text, err)
			}
			continue
		}
		fault, ok := errors.AsType[*models.Error](err)
		if !ok || !strings.HasPrefix(fault.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// TestDiffusionAdapters: adapters are at the layers that the library's scripts name,
// and to_out.0 is a name for to_out.
func TestDiffusionAdapters(t *testing.T) {
	for _, c := range []struct {
		model   string
		targets []string
		want    int64
	}{
		// Rank x (in + out) of each layer; PEFT prints the same for the U-Nets.
		{"stable-diffusion-v1-5/stable-diffusion-v1-5", nil, 797184},
		{"stable-diffusion-v1-5/stable-diffusion-v1-5", []string{"to_q", "to_k", "to_v", "to_out.0"}, 797184},
		{"stabilityai/stable-diffusion-xl-base-1.0", nil, 5806080},
	} {
		got, err := Build(c.model, models.Overrides{LoRA: 4, Targets: c.targets})
		if err != nil {
			t.Fatal(err)
		}
		if n := got.TrainableParams(); n != c.want {
			t.Errorf("%s: %d parameters are trained, want %d", c.model, n, c.want)
		}
	}
}
