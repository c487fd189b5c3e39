package hf

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"carma/configs/models"
	"carma/estimator/networks/diffusion"
	"carma/internal/suggest"
)

// classes are the known values of _class_name in a config.json of the diffusers
// library (0.42.1), whose classes have the structures and defaults.
var classes = map[string]builder{
	"UNet2DConditionModel":   unetCondition,
	"SD3Transformer2DModel":  sd3Transformer,
	"FluxTransformer2DModel": fluxTransformer,
	"AutoencoderKL":          autoencoder,
}

// diffusersModel makes the network of a class of the diffusers library.
func (f *fields) diffusersModel(name string, o models.Overrides) (*models.Config, error) {
	class := f.text("_class_name", "")
	if f.err != nil {
		return nil, f.err
	}
	build := classes[class]
	if build == nil {
		known := slices.Sorted(maps.Keys(classes))
		return nil, wrong("_class_name", "%s is not known here; the nearest: %s. Or say --params and --family", models.Short(class), strings.Join(suggest.Names(class, known, 2), ", "))
	}
	c, err := build(f, name, o)
	if f.err != nil {
		return nil, f.err
	}
	if err != nil {
		return nil, err
	}
	c.Origin = models.FromHF
	if class != "AutoencoderKL" {
		c.Warnings = append(c.Warnings, "only the "+class+" is counted: images and prompts were encoded before")
	}
	return c, nil
}

// most levels of a U-Net or an autoencoder, and layers of one.
const (
	mostLevels = 8
	mostPlies  = 64
)

// levels returns a list of integers, or one integer for all n levels. If n is 0, the list
// has any number of entries, at least one.
func (f *fields) levels(name string, n int, otherwise ...int64) []int64 {
	v, ok := f.value(name)
	if !ok || v == nil {
		if len(otherwise) == 1 {
			return slices.Repeat(otherwise, max(n, 1))
		}
		return otherwise
	}
	many, ok := v.([]any)
	if !ok {
		return slices.Repeat([]int64{f.whole(name, 0)}, max(n, 1))
	}
	if len(many) == 0 || len(many) > mostLevels || n > 0 && len(many) != n {
		f.fail(name, "%d numbers; one for each level of block_out_channels, at most %d", len(many), mostLevels)
		return slices.Repeat([]int64{1}, max(n, 1))
	}
	var out []int64
	for _, x := range many {
		one := &fields{values: map[string]any{name: x}}
		out = append(out, one.whole(name, 0))
		if one.err != nil && f.err == nil {
			f.err = one.err
		}
	}
	return out
}

// words returns texts, one for each of n levels.
func (f *fields) words(name string, n int, otherwise ...string) []string {
	v, ok := f.value(name)
	if !ok || v == nil {
		if len(otherwise) != n {
			f.fail(name, "missing; it has one for each level of block_out_channels")
			return make([]string, n)
		}
		return otherwise
	}
	many, ok := v.([]any)
	if !ok || len(many) != n {
		f.fail(name, "it is a list with one for each level of block_out_channels")
		return make([]string, n)
	}
	out := make([]string, n)
	for i, x := range many {
		if out[i], ok = x.(string); !ok {
			f.fail(name, "it is a list of texts")
		}
	}
	return out
}

// attends returns for each block whether it has attention. Other kinds of blocks are not
// known.
func (f *fields) attends(name, with, without string, n int, otherwise ...string) []bool {
	out := make([]bool, n)
	for i, word := range f.words(name, n, otherwise...) {
		switch word {
		case with:
			out[i] = true
		case without:
		default:
			f.fail(name, "%s is not known here; %s and %s are", models.Short(word), with, without)
		}
	}
	return out
}

// side returns the side of an image from the side of its latent, sample_size.
func (f *fields) side(otherwise int64) int64 {
	n := f.orZero("sample_size", otherwise)
	if n == 0 || n > 1024 {
		n = otherwise
	}
	return (n + 7) / 8 * 64
}

func unetCondition(f *fields, name string, o models.Overrides) (*models.Config, error) {
	u := &diffusion.UNet{In: f.whole("in_channels", 4), Out: f.whole("out_channels", 4), Depth: f.plies("layers_per_block", 2), Text: f.whole("cross_attention_dim", 1280)}
	u.Channels = f.levels("block_out_channels", 0, 320, 640, 1280, 1280)
	n := len(u.Channels)
	u.Down = f.attends("down_block_types", "CrossAttnDownBlock2D", "DownBlock2D", n, "CrossAttnDownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D", "DownBlock2D")
	u.Up = f.attends("up_block_types", "CrossAttnUpBlock2D", "UpBlock2D", n, "UpBlock2D", "CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "CrossAttnUpBlock2D")
	// The class takes attention_head_dim as the number of heads if that is not given.
	u.Heads = f.levels("num_attention_heads", n, f.levels("attention_head_dim", n, 8)...)
	u.Transformers = f.levels("transformer_layers_per_block", n, 1)
	for _, depth := range u.Transformers {
		if depth > mostPlies {
			f.fail("transformer_layers_per_block", "%d blocks; at most %d", depth, mostPlies)
		}
	}
	u.Linear = f.flag("use_linear_projection", false)
	switch middle := f.text("mid_block_type", "UNetMidBlock2DCrossAttn"); middle {
	case "UNetMidBlock2DCrossAttn":
		u.Middle = true
	case "UNetMidBlock2D":
	default:
		f.fail("mid_block_type", "%s is not known here; UNetMidBlock2DCrossAttn is", models.Short(middle))
	}
	switch added := f.text("addition_embed_type", ""); added {
	case "":
	case "text_time":
		u.Added = f.whole("projection_class_embeddings_input_dim", 0)
	default:
		f.fail("addition_embed_type", "%s is not known here; text_time is", models.Short(added))
	}
	if f.err != nil {
		return nil, f.err
	}
	for i, heads := range u.Heads {
		if u.Channels[i]%heads != 0 {
			return nil, wrong("attention_head_dim", "%d heads do not divide %d channels", heads, u.Channels[i])
		}
	}
	return (&diffusion.Diffusion{Name: name, UNet: u, Image: f.side(64)}).Config(o)
}

// plies returns the number of layers of a block.
func (f *fields) plies(name string, otherwise int64) int64 {
	n := f.whole(name, otherwise)
	if n > mostPlies {
		f.fail(name, "%d layers; at most %d", n, mostPlies)
	}
	return min(n, mostPlies)
}

func sd3Transformer(f *fields, name string, o models.Overrides) (*models.Config, error) {
	m := &diffusion.MMDiT{
		Depth: f.depth("num_layers"), Heads: f.whole("num_attention_heads", 18), Head: f.whole("attention_head_dim", 64),
		Text: f.whole("joint_attention_dim", 4096), Pooled: f.whole("pooled_projection_dim", 2048), Tokens: diffusion.SD3Tokens,
		Positions: f.whole("pos_embed_max_size", 96), Channels: f.whole("in_channels", 16), Norm: f.given("qk_norm"),
	}
	list, _ := f.value("dual_attention_layers")
	dual, _ := list.([]any)
	for i, v := range dual {
		// The models that have some have them from the first block on.
		if n, ok := v.(json.Number); !ok || n.String() != strconv.Itoa(i) {
			f.fail("dual_attention_layers", "it is a list 0, 1, 2 and so on; other lists are not known here")
		}
	}
	m.Dual = int64(len(dual))
	if p := f.whole("patch_size", 2); p != 2 {
		f.fail("patch_size", "%d; 2 is known here", p)
	}
	if width := f.whole("caption_projection_dim", 1152); f.err == nil && width != m.Heads*m.Head {
		f.fail("caption_projection_dim", "%d; it is heads x attention_head_dim, %d", width, m.Heads*m.Head)
	}
	if f.err != nil {
		return nil, f.err
	}
	return (&diffusion.Diffusion{Name: name, MMDiT: m, Image: f.side(128)}).Config(o)
}

func fluxTransformer(f *fields, name string, o models.Overrides) (*models.Config, error) {
	t := &diffusion.Flux{
		Double: f.depthOr("num_layers", 19), Single: f.depthOr("num_single_layers", 38), Heads: f.whole("num_attention_heads", 24),
		Head: f.whole("attention_head_dim", 128), Text: f.whole("joint_attention_dim", 4096), Pooled: f.whole("pooled_projection_dim", 768),
		Tokens: diffusion.FluxTokens, Channels: f.whole("in_channels", 64), Guidance: f.flag("guidance_embeds", false),
	}
	if t.Channels != 64 {
		f.fail("in_channels", "%d; 64 is known here", t.Channels)
	}
	if f.err != nil {
		return nil, f.err
	}
	return (&diffusion.Diffusion{Name: name, Flux: t, Image: 1024}).Config(o)
}

func autoencoder(f *fields, name string, o models.Overrides) (*models.Config, error) {
	a := &diffusion.Autoencoder{
		Channels: f.levels("block_out_channels", 0, 64), Depth: f.plies("layers_per_block", 1), Latent: f.whole("latent_channels", 4),
		Quant: f.flag("use_quant_conv", true),
	}
	f.attends("down_block_types", "", "DownEncoderBlock2D", len(a.Channels), slices.Repeat([]string{"DownEncoderBlock2D"}, len(a.Channels))...)
	if f.err != nil {
		return nil, f.err
	}
	return a.Config(name, o)
}
