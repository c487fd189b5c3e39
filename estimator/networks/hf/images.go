package hf

import (
	"carma/configs/models"
	"carma/estimator/networks/graph"
	"carma/estimator/networks/transformer"
)

// imageHeads are the heads of image encoders.
var imageHeads = []string{graph.ImageClassification, graph.BaseModel}

// imageEncoder returns the builder of a vision Transformer, whose tokens are patches.
func imageEncoder(set func(*fields, *transformer.ImageEncoder), heads ...string) builder {
	return func(f *fields, name string, o models.Overrides) (*models.Config, error) {
		v := &transformer.ImageEncoder{Name: name, Head: f.head(o, heads...), Classes: f.classes()}
		set(f, v)
		if f.err != nil {
			return nil, f.err
		}
		return v.Config(o)
	}
}

// patches reads what Transformers of patches have in common.
func (f *fields) patches(v *transformer.ImageEncoder) {
	v.Width, v.Depth = f.whole("hidden_size", 768), f.depthOr("num_hidden_layers", 12)
	f.heads(&v.Block, "num_attention_heads", 12)
	v.Inner = f.whole("intermediate_size", 3072)
	v.Image, v.Patch, v.Channels = f.square("image_size", 224), f.square("patch_size", 16), f.whole("num_channels", 3)
	if v.Patch > v.Image {
		f.fail("patch_size", "%d is larger than the image of %d", v.Patch, v.Image)
	}
	v.LayerNorm, v.BiasQKV, v.BiasOut, v.BiasInner = true, f.flag("qkv_bias", true), true, true
	v.Projections = clipNames
	v.Projections.Out = "o_proj"
	v.Dropout = f.chance("hidden_dropout_prob", 0)
}

var clipNames = transformer.Projections{Q: "q_proj", K: "k_proj", V: "v_proj", Out: "out_proj", Gate: "gate_proj", Up: "fc1", Down: "fc2"}

func vit(f *fields, v *transformer.ImageEncoder) {
	f.patches(v)
	v.Activation = f.activation("hidden_act", "gelu")
	v.ClassToken, v.FinalNorm, v.Pooler, v.Pool = true, true, true, transformer.PoolFirst
}

// dinov2 multiplies each part by learned numbers.
func dinov2(f *fields, v *transformer.ImageEncoder) {
	vit(f, v)
	v.Inner = f.whole("mlp_ratio", 4) * v.Width
	v.Scaled, v.Pooler, v.Pool = true, false, transformer.PoolBoth
	v.Patch = f.square("patch_size", 14)
	v.MaskToken = f.flag("use_mask_token", true)
	if f.flag("use_swiglu_ffn", false) {
		v.Gated, v.Activation, v.Inner = true, models.SiLU, (v.Inner*2/3+7)/8*8
		v.Projections.Up, v.Projections.Down = "up_proj", "down_proj"
	}
	if f.text("model_type", "") == "dinov2_with_registers" {
		v.Patch = f.square("patch_size", 16)
		v.Registers = f.whole("num_register_tokens", 4)
	}
}

// deit has a second learned token.
func deit(f *fields, v *transformer.ImageEncoder) {
	vit(f, v)
	v.Distilled = true
}

// beit has scores of pairs of patches, and parts that are scaled and left out at random.
func beit(f *fields, v *transformer.ImageEncoder) {
	vit(f, v)
	v.BiasQKV, v.PlainKey, v.Pooler = true, true, false
	v.MaskToken, v.NoPositions = f.flag("use_mask_token", false), !f.flag("use_absolute_position_embeddings", false)
	v.Scaled = f.number("layer_scale_init_value", 0.1) > 0
	v.SkipPath, v.PathRises = f.chance("drop_path_rate", 0.1), true
	bias := &transformer.PatchBias{Own: max(v.Image/v.Patch, 1)}
	if f.flag("use_relative_position_bias", false) {
		v.PatchBias = bias
	}
	if f.flag("use_shared_relative_position_bias", false) {
		v.Shared = bias
	}
	if f.flag("use_mean_pooling", true) {
		v.FinalNorm, v.MeanNorm, v.Pool = false, true, transformer.PoolMean
	}
}

// dinov3 turns the queries and keys of patches by their positions. The library has no
// class with a head for it.
func dinov3(f *fields, v *transformer.ImageEncoder) {
	vit(f, v)
	v.Width, v.Inner = f.whole("hidden_size", 384), f.whole("intermediate_size", 1536)
	f.heads(&v.Block, "num_attention_heads", 6)
	v.BiasQKV, v.PlainQuery = true, !f.flag("query_bias", true)
	v.PlainKey, v.PlainValue = !f.flag("key_bias", false), !f.flag("value_bias", true)
	v.BiasOut, v.BiasInner = f.flag("proj_bias", true), f.flag("mlp_bias", true)
	v.Scaled, v.Pooler, v.MaskToken, v.NoPositions = true, false, true, true
	v.SkipPath, v.Dropout = f.chance("drop_path_rate", 0), false
	v.Registers = f.orZero("num_register_tokens", 0)
	v.Rotary, v.Prefix, v.OrderedOut = true, v.Registers+1, true
	v.Gated = f.flag("use_gated_mlp", false)
	v.Projections.Up, v.Projections.Down = "up_proj", "down_proj"
}

// towers returns the builder of a text encoder with an image encoder.
func towers(set func(f, text, vision *fields, t *transformer.Towers)) builder {
	return func(f *fields, name string, o models.Overrides) (*models.Config, error) {
		head := f.head(o, graph.Contrastive, graph.ImageClassification)
		text, _ := f.part("text_config")
		vision, _ := f.part("vision_config")
		t := &transformer.Towers{Name: name}
		set(f, text, vision, t)
		if err := faultIn(part{"", f}, part{"text_config.", text}, part{"vision_config.", vision}); err != nil {
			return nil, err
		}
		if head == graph.Contrastive {
			return t.Config(o)
		}
		t.Image.Name, t.Image.Head, t.Image.Classes, t.Image.Pool = name, head, f.classes(), transformer.PoolMean
		return t.Image.Config(o)
	}
}

func clip(f, text, vision *fields, t *transformer.Towers) {
	text.tower(&t.Text, 512, 8, 49408, 77, "quick_gelu")
	v := &t.Image
	vision.patches(v)
	v.Patch = vision.square("patch_size", 32)
	v.Activation = vision.activation("hidden_act", "quick_gelu")
	v.Projections = clipNames
	v.PlainPatch, v.ClassToken, v.EntryNorm, v.LastNorm, v.Beside = true, true, true, true, true
	t.Projection, t.Scalars = f.whole("projection_dim", 512), 1
}

func siglip(f, text, vision *fields, t *transformer.Towers) {
	text.tower(&t.Text, 768, 12, 32000, 64, "gelu_pytorch_tanh")
	v := &t.Image
	vision.patches(v)
	v.Activation = vision.activation("hidden_act", "gelu_pytorch_tanh")
	v.Projections = clipNames
	v.FinalNorm, v.Probe, v.Beside = true, true, true
	t.Scalars = 2
}

// tower reads the text encoder of such a model.
func (f *fields) tower(t *transformer.TextEncoder, width, heads, words, longest int64, activation string) {
	t.Width = f.whole("hidden_size", width)
	t.Inner, t.Depth = f.whole("intermediate_size", 4*width), f.depthOr("num_hidden_layers", 12)
	f.heads(&t.Block, "num_attention_heads", heads)
	t.Vocabulary = f.whole("vocab_size", words)
	t.Longest = f.whole("max_position_embeddings", longest)
	t.Positions, t.Bare, t.FinalNorm = t.Longest, true, true
	t.LayerNorm, t.BiasQKV, t.BiasOut, t.BiasInner = true, true, true, true
	t.Activation = f.activation("hidden_act", activation)
	t.Projections = clipNames
}

// swin reads a Transformer of shifted windows.
func swin(f *fields, name string, o models.Overrides) (*models.Config, error) {
	w := f.swin(name, f.head(o, imageHeads...))
	if w.Classes = f.classes(); f.err != nil {
		return nil, f.err
	}
	return w.Config(o)
}

// swin reads the stages of a Transformer of shifted windows.
func (f *fields) swin(name, head string) *transformer.SwinEncoder {
	w := &transformer.SwinEncoder{Name: name, Head: head}
	w.Depths, w.HeadsOf = f.wholes("depths", 2, 2, 6, 2), f.wholes("num_heads", 3, 6, 12, 24)
	w.Width, w.Ratio = f.whole("embed_dim", 96), f.whole("mlp_ratio", 4)
	w.Image, w.Patch, w.Channels = f.square("image_size", 224), f.square("patch_size", 4), f.whole("num_channels", 3)
	w.Window = f.whole("window_size", 7)
	if len(w.Depths) != len(w.HeadsOf) || len(w.Depths) > 8 {
		f.fail("num_heads", "%d stages, depths has %d; at most 8", len(w.HeadsOf), len(w.Depths))
	}
	for _, n := range w.Depths {
		if n > deepest/8 {
			f.fail("depths", "%d blocks; at most %d", n, deepest/8)
		}
	}
	if w.Window > 64 {
		f.fail("window_size", "%d pixels; at most 64", w.Window)
	}
	w.Heads = w.HeadsOf[0]
	w.Key = f.split(w.Width, w.Heads)
	w.LayerNorm, w.BiasQKV, w.BiasOut, w.BiasInner = true, f.flag("qkv_bias", true), true, true
	w.Activation = f.activation("hidden_act", "gelu")
	w.Dropout, w.SkipPath = f.chance("hidden_dropout_prob", 0), f.chance("drop_path_rate", 0.1)
	w.Projections = clipNames
	w.Projections.Out = "o_proj"
	return w
}
