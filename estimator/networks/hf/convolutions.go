package hf

import (
	"carma/configs/models"
	"carma/estimator/networks/vision"
)

// mostStages bounds the stages of a network of convolutions, each of which halves the
// image.
const mostStages = 8

// stages reads how many blocks each stage has, and of how many channels.
func (f *fields) stages(depths, widths []int64) (d, w []int64) {
	d, w = f.wholes("depths", depths...), f.wholes("hidden_sizes", widths...)
	if len(d) != len(w) || len(d) > mostStages {
		f.fail("hidden_sizes", "%d stages, depths has %d; at most %d", len(w), len(d), mostStages)
	}
	for _, n := range d {
		if n > deepest/mostStages {
			f.fail("depths", "%d blocks; at most %d", n, deepest/mostStages)
		}
	}
	return d, w
}

// convNeXt reads a ConvNeXt or ConvNeXt V2.
func convNeXt(f *fields, name string, o models.Overrides) (*models.Config, error) {
	second := f.text("model_type", "") == "convnextv2"
	c := &vision.ConvNeXtEncoder{Name: name, Head: f.head(o, imageHeads...), Classes: f.classes(), Response: second}
	c.Depths, c.Widths = f.stages([]int64{3, 3, 9, 3}, []int64{96, 192, 384, 768})
	if n := f.whole("num_stages", int64(len(c.Depths))); n != int64(len(c.Depths)) {
		f.fail("num_stages", "%d, depths has %d", n, len(c.Depths))
	}
	c.Image, c.Patch, c.Channels = f.square("image_size", 224), f.square("patch_size", 4), f.whole("num_channels", 3)
	if c.Patch > c.Image {
		f.fail("patch_size", "%d is larger than the image of %d", c.Patch, c.Image)
	}
	c.Activation = f.single("hidden_act", "gelu")
	c.Scaled = !second && f.number("layer_scale_init_value", 1e-6) > 0
	c.SkipPath = f.chance("drop_path_rate", 0)
	if f.err != nil {
		return nil, f.err
	}
	return c.Config(o)
}

// resNet reads a residual network. Its configuration has no size of the images.
func resNet(f *fields, name string, o models.Overrides) (*models.Config, error) {
	r := f.resNet(name, f.head(o, imageHeads...))
	if r.Classes = f.classes(); f.err != nil {
		return nil, f.err
	}
	return r.Config(o)
}

// resNet reads the stages of a residual network.
func (f *fields) resNet(name, head string) *vision.ResNetEncoder {
	r := &vision.ResNetEncoder{Name: name, Head: head, Image: 224}
	r.Depths, r.Widths = f.stages([]int64{3, 4, 6, 3}, []int64{256, 512, 1024, 2048})
	r.Stem, r.Channels = f.whole("embedding_size", 64), f.whole("num_channels", 3)
	r.Activation = f.single("hidden_act", "relu")
	switch kind := f.text("layer_type", "bottleneck"); kind {
	case "basic", "bottleneck":
		r.Bottleneck = kind == "bottleneck"
	default:
		f.fail("layer_type", "%s; it is basic or bottleneck", models.Short(kind))
	}
	r.FirstHalves, r.EarlyHalves = f.flag("downsample_in_first_stage", false), f.flag("downsample_in_bottleneck", false)
	return r
}

// single returns an activation that must be one operation.
func (f *fields) single(name, otherwise string) string {
	a := f.activation(name, otherwise)
	if a == "new_gelu" || a == "quick_gelu" {
		f.fail(name, "%s is not known for this architecture; for example gelu", a)
	}
	return a
}
