package hf

import (
	"encoding/json"

	"carma/configs/models"
	"carma/estimator/networks/graph"
	"carma/estimator/networks/transformer"
)

// wav2vec2 reads an encoder of sound. HuBERT has the same parts.
func wav2vec2(f *fields, name string, o models.Overrides) (*models.Config, error) {
	w := &transformer.WaveEncoder{Name: name, Head: f.head(o, graph.CTC, graph.SequenceClassification, graph.BaseModel), Classes: f.classes()}
	w.Width, w.Inner = f.whole("hidden_size", 768), f.whole("intermediate_size", 3072)
	w.Depth = f.depthOr("num_hidden_layers", 12)
	f.heads(&w.Block, "num_attention_heads", 12)
	w.Groups = f.whole("num_conv_pos_embedding_groups", 16)
	w.LayerNorm, w.BiasQKV, w.BiasOut, w.BiasInner = true, true, true, true
	w.SumNorm = !f.flag("do_stable_layer_norm", false)
	w.Activation = f.activation("hidden_act", "gelu")
	w.Dropout, w.InnerDrop = f.chance("hidden_dropout", 0.1), f.chance("activation_dropout", 0.1)
	w.Projections = transformer.Projections{Q: "q_proj", K: "k_proj", V: "v_proj", Out: "out_proj", Up: "intermediate_dense", Down: "output_dense"}
	w.Channels = f.wholes("conv_dim", 512, 512, 512, 512, 512, 512, 512)
	w.Kernel, w.Steps = f.wholes("conv_kernel", 10, 3, 3, 3, 3, 2, 2), f.wholes("conv_stride", 5, 2, 2, 2, 2, 2, 2)
	w.LayerNorms, w.ConvBias = f.text("feat_extract_norm", "group") == "layer", f.flag("conv_bias", false)
	w.ProjectionDrop, w.FinalDrop = f.chance("feat_proj_dropout", 0), f.chance("final_dropout", 0.1)
	w.PositionKernel = f.whole("num_conv_pos_embeddings", 128)
	w.SpecEmbed = f.chance("mask_time_prob", 0.05) || f.chance("mask_feature_prob", 0)
	w.Vocabulary, w.ClassWidth = f.whole("vocab_size", 32), f.whole("classifier_proj_size", 256)
	if len(w.Channels) != len(w.Kernel) || len(w.Channels) != len(w.Steps) {
		f.fail("conv_kernel", "%d convolutions, conv_dim has %d and conv_stride %d", len(w.Kernel), len(w.Channels), len(w.Steps))
	}
	if w.Width%w.Groups != 0 {
		f.fail("num_conv_pos_embedding_groups", "%d does not divide the width of %d", w.Groups, w.Width)
	}
	if f.err != nil {
		return nil, f.err
	}
	return w.Config(o)
}

// wholes returns a list of at most 100 integers.
func (f *fields) wholes(name string, otherwise ...int64) []int64 {
	v, ok := f.value(name)
	if !ok || v == nil {
		return otherwise
	}
	list, ok := v.([]any)
	if !ok || len(list) == 0 || len(list) > 100 {
		f.fail(name, "it is a list of 1 to 100 whole numbers")
		return otherwise
	}
	out := make([]int64, len(list))
	for i, one := range list {
		number, _ := one.(json.Number)
		n, err := number.Int64()
		if err != nil || n < 1 || n > 1<<16 {
			f.fail(name, "%v is no whole number from 1 to %d", one, 1<<16)
			return otherwise
		}
		out[i] = n
	}
	return out
}
