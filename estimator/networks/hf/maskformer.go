package hf

import (
	"carma/configs/models"
	"carma/estimator/networks/detection"
	"carma/estimator/networks/graph"
)

// maskFormer reads a MaskFormer.
func maskFormer(f *fields, name string, o models.Overrides) (*models.Config, error) {
	f.head(o, graph.InstanceSegmentation) // the only one
	m := &detection.MaskFormer{Name: name, Classes: f.classes()}
	m.Features, m.MaskWidth = f.whole("fpn_feature_size", 256), f.whole("mask_feature_size", 256)
	if f.flag("use_auxiliary_loss", false) {
		f.fail("use_auxiliary_loss", "true; the library's class fails with it (transformers 5.23). Set it to false")
	}
	below, decoder := f.object("backbone_config"), f.object("decoder_config")
	switch kind := below.text("model_type", "swin"); kind {
	case "swin", "maskformer-swin":
		m.Swin = below.swin("backbone", graph.BaseModel)
	case "resnet":
		m.ResNet = below.resNet("backbone", graph.BaseModel)
	default:
		f.fail("backbone_config.model_type", "%s is not known here; it is swin or resnet", models.Short(kind))
	}
	q := &m.Queries
	q.Width, q.Queries = decoder.whole("d_model", 256), decoder.whole("num_queries", 100)
	q.Decoder = decoder.queryLayers("decoder", q.Width)
	q.Activation = decoder.single("activation_function", "relu")
	q.Dropout, q.InnerDrop = decoder.chance("dropout", 0.1), decoder.chance("activation_dropout", 0)
	if err := faultIn(part{"", f}, part{"backbone_config.", below}, part{"decoder_config.", decoder}); err != nil {
		return nil, err
	}
	return m.Config(o)
}
