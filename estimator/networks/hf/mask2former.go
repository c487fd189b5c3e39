package hf

import (
	"carma/configs/models"
	"carma/estimator/networks/detection"
	"carma/estimator/networks/graph"
)

// mask2Former reads a Mask2Former.
func mask2Former(f *fields, name string, o models.Overrides) (*models.Config, error) {
	f.head(o, graph.UniversalSegmentation) // the only one
	m := &detection.Mask2Former{Name: name, Classes: f.classes()}
	m.Features, m.MaskWidth = f.whole("feature_size", 256), f.whole("mask_feature_size", 256)
	m.Width, m.Queries = f.whole("hidden_dim", 256), f.whole("num_queries", 100)
	heads := f.whole("num_attention_heads", 8)
	if m.Features%heads != 0 || m.Width%heads != 0 {
		f.fail("num_attention_heads", "%d heads do not divide widths of %d (feature_size) and %d (hidden_dim)", heads, m.Features, m.Width)
	}
	m.Encoder = detection.QueryLayers{Depth: f.depthOr("encoder_layers", 6), Heads: heads, Inner: f.whole("encoder_feedforward_dim", 1024)}
	m.Decoder = detection.QueryLayers{Depth: f.depthOr("decoder_layers", 10), Heads: heads, Inner: f.whole("dim_feedforward", 2048)}
	m.Activation = f.single("activation_function", "relu")
	m.Dropout, m.NormFirst = f.chance("dropout", 0), f.flag("pre_norm", false)
	m.Projected = f.flag("enforce_input_projection", false)
	m.EachLayer = f.flag("use_auxiliary_loss", true)
	m.Points = f.whole("train_num_points", 12544)
	m.PointsSampled = int64(float64(m.Points) * min(f.number("oversample_ratio", 3), 1<<10))
	switch n := f.whole("common_stride", 4); n {
	case 4, 8:
		m.Coarse = n == 8
	default:
		f.fail("common_stride", "%d; it is 4 or 8", n)
	}
	below := f.object("backbone_config")
	if kind := below.text("model_type", "swin"); kind != "swin" {
		f.fail("backbone_config.model_type", "%s is not known here; it is swin", models.Short(kind))
	}
	m.Backbone = below.swin("backbone", graph.BaseModel)
	if err := faultIn(part{"", f}, part{"backbone_config.", below}); err != nil {
		return nil, err
	}
	return m.Config(o)
}
