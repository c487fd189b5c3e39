package hf

import (
	"slices"

	"carma/configs/models"
	"carma/estimator/networks/detection"
	"carma/estimator/networks/graph"
)

// sam2 reads a SAM 2, for images.
func sam2(f *fields, name string, o models.Overrides) (*models.Config, error) {
	m := &detection.SAM2{Name: name, Head: f.head(o, graph.MaskGeneration, graph.MaskDecoder)}
	vision, prompt, decoder := f.object("vision_config"), f.object("prompt_encoder_config"), f.object("mask_decoder_config")
	backbone := vision.object("backbone_config")
	backbone.hiera(m)
	vision.pyramid(m)
	m.Points, m.MaskChannels = prompt.whole("num_point_embeddings", 4), prompt.whole("mask_input_channels", 16)
	if m.MaskChannels < 4 {
		prompt.fail("mask_input_channels", "%d; at least 4", m.MaskChannels)
	}
	decoder.samDecoder(&m.Decoder)
	m.Decoder.Scored = true
	width := prompt.whole("hidden_size", 256)
	err := faultIn(part{"", f}, part{"vision_config.backbone_config.", backbone}, part{"vision_config.", vision}, part{"prompt_encoder_config.", prompt}, part{"mask_decoder_config.", decoder})
	if err != nil {
		return nil, err
	}
	if width != m.Decoder.Width || width != m.Output || width%8 != 0 {
		return nil, wrong("vision_config.fpn_hidden_size", "%d; it is the same as hidden_size of the decoder (%d) and of the prompts (%d), a multiple of 8", m.Output, m.Decoder.Width, width)
	}
	return m.Config(o)
}

// hiera reads the encoder of the image.
func (f *fields) hiera(m *detection.SAM2) {
	m.Image, m.Channels = f.bothSides("image_size", 1024), f.whole("num_channels", 3)
	m.Kernel, m.Stride, m.Pad = f.bothSides("patch_kernel_size", 7), f.bothSides("patch_stride", 4), f.bothSides("patch_padding", 3)
	m.Background = f.bothSides("window_positional_embedding_background_size", 7)
	m.Pools, m.Ratio = f.orZero("num_query_pool_stages", 3), min(f.number("mlp_ratio", 4), 1<<10)
	m.Global, m.Activation = f.blocks("global_attention_blocks", 5, 7, 9), f.single("hidden_act", "gelu")
	if n := f.bothSides("query_stride", 2); n != 2 {
		f.fail("query_stride", "%d; stages halve the image here, 2", n)
	}
	blocks := f.wholes("blocks_per_stage", 1, 2, 7, 2)
	lists := [][]int64{
		f.wholes("embed_dim_per_stage", 96, 192, 384, 768), f.wholes("num_attention_heads_per_stage", 1, 2, 4, 8), f.wholes("window_size_per_stage", 8, 4, 14, 7),
	}
	for i, name := range []string{"embed_dim_per_stage", "num_attention_heads_per_stage", "window_size_per_stage"} {
		if len(blocks) != 4 || len(lists[i]) != 4 {
			f.fail(name, "%d stages, blocks_per_stage has %d; both have 4", len(lists[i]), len(blocks))
			return
		}
	}
	for i, n := range blocks {
		s := detection.HieraStage{Blocks: n, Width: lists[0][i], Heads: lists[1][i], Window: lists[2][i]}
		if n > deepest/4 {
			f.fail("blocks_per_stage", "%d blocks; at most %d", n, deepest/4)
		}
		if s.Width%s.Heads != 0 {
			f.fail("num_attention_heads_per_stage", "%d heads do not divide a width of %d", s.Heads, s.Width)
		}
		m.Stages = append(m.Stages, s)
	}
	if m.Pools != 3 {
		f.fail("num_query_pool_stages", "%d; 3 of 4 stages halve the image here", m.Pools)
	}
	if m.Image%(8*m.Stride) != 0 {
		f.fail("image_size", "%d; it is a multiple of eight patches of %d", m.Image, m.Stride)
	}
	if d := 2*m.Pad - m.Kernel + m.Stride; d < 0 || d >= m.Stride {
		f.fail("patch_kernel_size", "%d with a padding of %d; patches cover the image once", m.Kernel, m.Pad)
	}
}

// bothSides returns a whole number, or one for both sides of an image that are the same.
func (f *fields) bothSides(name string, otherwise int64) int64 {
	if v, _ := f.value(name); v != nil {
		if _, list := v.([]any); list {
			both := f.wholes(name)
			if len(both) == 0 || slices.Max(both) != slices.Min(both) {
				f.fail(name, "%v; both sides are the same here", both)
				return otherwise
			}
			return both[0]
		}
	}
	return f.whole(name, otherwise)
}

// pyramid reads the settings of the part that computes features from the stages.
func (f *fields) pyramid(m *detection.SAM2) {
	m.Output, m.TopDown = f.whole("fpn_hidden_size", 256), f.blocks("fpn_top_down_levels", 2, 3)
	if n := f.whole("num_feature_levels", 3); n != 3 {
		f.fail("num_feature_levels", "%d; the decoder takes 3", n)
	}
	if n := f.whole("fpn_kernel_size", 1); n != 1 {
		f.fail("fpn_kernel_size", "%d; 1 is known", n)
	}
}
