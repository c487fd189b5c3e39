package hf

import (
	"encoding/json"

	"carma/configs/models"
	"carma/estimator/networks/detection"
	"carma/estimator/networks/graph"
	"carma/estimator/networks/transformer"
)

// sam reads a model that makes masks of images by prompts.
func sam(f *fields, name string, o models.Overrides) (*models.Config, error) {
	m := &detection.SAM{Name: name, Head: f.head(o, graph.MaskGeneration, graph.MaskDecoder)}
	vision, prompt, decoder := f.object("vision_config"), f.object("prompt_encoder_config"), f.object("mask_decoder_config")
	vision.samVision(m)
	prompt.samPrompt(m)
	decoder.samDecoder(&m.Decoder)
	width := prompt.whole("hidden_size", 256)
	if err := faultIn(part{"", f}, part{"vision_config.", vision}, part{"prompt_encoder_config.", prompt}, part{"mask_decoder_config.", decoder}); err != nil {
		return nil, err
	}
	if width != m.Decoder.Width || width != m.Output || width != 2*m.Features {
		return nil, wrong("vision_config.output_channels", "%d; it is the same as hidden_size of the decoder (%d) and of the prompts (%d), and twice num_pos_feats (%d)",
			m.Output, m.Decoder.Width, width, m.Features)
	}
	return m.Config(o)
}

// part is an object within a configuration, with the path to it.
type part struct {
	path   string
	fields *fields
}

// faultIn returns the first error in the parts of a configuration, with the path to it.
func faultIn(parts ...part) error {
	for _, p := range parts {
		if fault, ok := p.fields.err.(*models.Error); ok {
			fault.Field = p.path + fault.Field
			return fault
		}
	}
	return nil
}

// object returns an object within the configuration. A missing object has no fields.
func (f *fields) object(name string) *fields {
	part, ok := f.part(name)
	if !ok && f.given(name) {
		f.fail(name, "it is an object {...}")
	}
	return part
}

func (f *fields) samVision(m *detection.SAM) {
	m.Width, m.Depth = f.whole("hidden_size", 768), f.depthOr("num_hidden_layers", 12)
	f.heads(&m.Block, "num_attention_heads", 12)
	m.Image, m.Patch, m.Channels = f.square("image_size", 1024), f.square("patch_size", 16), f.whole("num_channels", 3)
	if m.Patch > m.Image {
		f.fail("patch_size", "%d is larger than the image of %d", m.Patch, m.Image)
	}
	m.Inner = f.whole("mlp_dim", max(int64(float64(m.Width)*min(f.number("mlp_ratio", 4), 1<<10)), 1))
	m.LayerNorm, m.BiasQKV, m.BiasInner = true, f.flag("qkv_bias", true), true
	m.Activation = f.single("hidden_act", "gelu")
	m.Relative, m.Absolute = f.flag("use_rel_pos", true), f.flag("use_abs_pos", true)
	m.Window, m.Global = f.orZero("window_size", 14), f.blocks("global_attn_indexes", 2, 5, 8, 11)
	m.Features, m.Output = f.whole("num_pos_feats", 128), f.whole("output_channels", 256)
	m.Projections = transformer.Projections{Up: "lin1", Down: "lin2"}
}

func (f *fields) samPrompt(m *detection.SAM) {
	m.Points, m.MaskChannels = f.whole("num_point_embeddings", 4), f.whole("mask_input_channels", 16)
}

func (f *fields) samDecoder(d *detection.SAMDecoder) {
	d.Width, d.Inner = f.whole("hidden_size", 256), f.whole("mlp_dim", 2048)
	d.Heads, d.Depth = f.whole("num_attention_heads", 8), f.depthOr("num_hidden_layers", 2)
	d.Activation = f.single("hidden_act", "relu")
	d.Narrow = max(d.Width/f.whole("attention_downsample_rate", 2), 1)
	if d.Narrow%d.Heads != 0 {
		f.fail("num_attention_heads", "%d heads do not divide a width of %d", d.Heads, d.Narrow)
	}
	const most = 1000 // masks, and layers of the part that judges them
	d.Masks, d.QualityDepth = f.whole("num_multimask_outputs", 3), f.whole("iou_head_depth", 3)
	if d.Masks > most {
		f.fail("num_multimask_outputs", "%d; at most %d", d.Masks, most)
	}
	if d.QualityDepth > most || d.QualityDepth < 2 {
		f.fail("iou_head_depth", "%d; it is 2 to %d", d.QualityDepth, most)
	}
	d.QualityInner = f.whole("iou_head_hidden_dim", 256)
}

// blocks returns a list of block indexes, which count from 0.
func (f *fields) blocks(name string, otherwise ...int64) []int64 {
	v, ok := f.value(name)
	if !ok || v == nil {
		return otherwise
	}
	list, ok := v.([]any)
	if !ok || len(list) > deepest {
		f.fail(name, "it is a list of at most %d whole numbers", deepest)
		return otherwise
	}
	out := make([]int64, 0, len(list))
	for _, one := range list {
		number, _ := one.(json.Number)
		n, err := number.Int64()
		if err != nil || n < 0 || n >= deepest {
			f.fail(name, "%v is no block from 0 to %d", one, deepest-1)
			return otherwise
		}
		out = append(out, n)
	}
	return out
}
