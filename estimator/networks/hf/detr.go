package hf

import (
	"slices"
	"strings"

	"carma/configs/models"
	"carma/estimator/networks/detection"
	"carma/estimator/networks/graph"
	"carma/internal/suggest"
)

// detr reads a DETR.
func detr(f *fields, name string, o models.Overrides) (*models.Config, error) {
	d := &detection.DETR{Name: name, Head: f.head(o, graph.ObjectDetection, graph.Segmentation), Classes: f.classes()}
	d.Width, d.Queries = f.whole("d_model", 256), f.whole("num_queries", 100)
	d.Encoder, d.Decoder = f.queryLayers("encoder", d.Width), f.queryLayers("decoder", d.Width)
	d.Activation = f.single("activation_function", "relu")
	d.Dropout, d.InnerDrop = f.chance("dropout", 0.1), f.chance("activation_dropout", 0)
	d.EachLayer = f.flag("auxiliary_loss", false)
	switch kind := f.text("position_embedding_type", "sine"); kind {
	case "sine", "learned":
		d.Learned = kind == "learned"
	default:
		f.fail("position_embedding_type", "%s; it is sine or learned", models.Short(kind))
	}
	d.Channels = f.whole("num_channels", 3)
	if d.Head == graph.Segmentation && (d.Width%128 != 0 || d.Encoder.Heads%8 != 0) {
		f.fail("d_model", "%d; with masks it is a multiple of 128, and there are a multiple of 8 heads", d.Width)
	}
	below := f.trunk(&d.Backbone)
	if err := faultIn(part{"", f}, part{"backbone_config.", below}); err != nil {
		return nil, err
	}
	return d.Config(o)
}

// queryLayers reads the sizes of an encoder or decoder.
func (f *fields) queryLayers(side string, width int64) (l detection.QueryLayers) {
	l.Depth, l.Heads, l.Inner = f.depthOr(side+"_layers", 6), f.whole(side+"_attention_heads", 8), f.whole(side+"_ffn_dim", 2048)
	if width%l.Heads != 0 {
		f.fail(side+"_attention_heads", "%d heads do not divide a width of %d", l.Heads, width)
	}
	return l
}

// trunk reads the network of convolutions below: a name of the timm library, or the
// configuration of one of the transformers library.
func (f *fields) trunk(b *detection.Backbone) (own *fields) {
	given := f.given("backbone_config")
	own = f.object("backbone_config")
	b.Dilate = f.flag("dilation", false)
	if given && own.text("model_type", "") == "resnet" {
		b.Own = own.resNet("backbone", graph.BaseModel)
		return own
	}
	field, word := "backbone", f.text("backbone", "resnet50")
	switch {
	case given && own.text("model_type", "") == "timm_backbone":
		field, word = "backbone_config.backbone", own.text("backbone", "resnet50")
	case given:
		f.fail("backbone_config.model_type", "%s is not known here; it is resnet or timm_backbone", models.Short(own.text("model_type", "")))
	case !f.flag("use_timm_backbone", true):
		f.fail("backbone_config", "missing; without the timm library (use_timm_backbone) the network of convolutions is there")
	}
	b.Name = word[:strings.IndexByte(word+".", '.')] // a tag after the dot names the training data
	if !slices.Contains(detection.Trunks(), b.Name) {
		f.fail(field, "%s is not known here; the nearest: %s", models.Short(word), strings.Join(suggest.Names(word, detection.Trunks(), 2), ", "))
	}
	return own
}
