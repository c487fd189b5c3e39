package zoo

import (
	"testing"

	"carma/configs/models"
)

// tallies are the numbers of convolutions, batch norms and linear layers, each
// with the elements of their outputs per sample.
type tallies [3][2]int64

// These are networks of CARMA's measured runs, from the layer tables that its
// authors published (the .model files of itu-rad/CARMA, 2025).
func TestPublishedTables(t *testing.T) {
	for _, c := range []struct {
		name   string
		image  int
		params int64
		want   tallies
	}{
		{"inception_v3/imagenet", 0, 23834568, tallies{{94, 8967488}, {94, 8967488}, {1, 1000}}},
		{"xception/imagenet", 224, 22855952, tallies{{74, 19660320}, {40, 11610784}, {1, 1000}}},
		{"efficientnet_b0/imagenet", 0, 5288548, tallies{{81, 6747036}, {49, 6737696}, {1, 1000}}},
		{"mobilenet_v2/imagenet", 0, 3504872, tallies{{52, 6678112}, {52, 6678112}, {1, 1000}}},
		{"resnet50/imagenet", 0, 25557032, tallies{{53, 11113984}, {53, 11113984}, {1, 1000}}},
		{"vgg16/imagenet", 0, 138357544, tallies{{13, 13547520}, {0, 0}, {3, 9192}}},
		{"resnet18/cifar100", 0, 11227812, tallies{{20, 50688}, {20, 50688}, {1, 100}}},
		{"resnet34/cifar100", 0, 21335972, tallies{{36, 76288}, {36, 76288}, {1, 100}}},
		{"efficientnet_b0/cifar100", 0, 4135648, tallies{{81, 146844}, {49, 137504}, {1, 100}}},
		{"mnist_cnn/mnist", 0, 1199882, tallies{{2, 58496}, {0, 0}, {2, 138}}},
		{"dlrm/criteo", 0, 909313, tallies{{0, 0}, {0, 0}, {8, 2753}}},
	} {
		cfg := build(t, c.name, models.Overrides{Image: c.image})
		var got tallies
		for _, l := range cfg.Layers {
			for i, kind := range []string{models.Convolution, models.BatchNorm, models.Linear} {
				if l.Type == kind {
					got[i][0]++
					got[i][1] += count(l.Out)
				}
			}
		}
		if got != c.want || params(cfg) != c.params {
			t.Errorf("%s has %v and %d parameters, want %v and %d", c.name, got, params(cfg), c.want, c.params)
		}
	}
}

// The published table of the U-Net contains only its blocks.
func TestPublishedUNet(t *testing.T) {
	cfg := build(t, "unet", models.Overrides{})
	if got := params(cfg); got != 24439269 {
		t.Errorf("unet has %d parameters, want 24439269", got)
	}
	blocks := map[int]int64{}
	last := map[int][]int64{}
	for _, l := range cfg.Layers {
		for _, p := range l.Params {
			blocks[l.Block] += p
		}
		last[l.Block] = l.Out
	}
	want := []struct{ params, channels, side int64 }{
		{73984, 64, 128}, {73984, 64, 128}, {73984, 64, 128},
		{230144, 128, 64}, {295424, 128, 64}, {295424, 128, 64}, {295424, 128, 64},
		{919040, 256, 32}, {1180672, 256, 32}, {1180672, 256, 32}, {1180672, 256, 32}, {1180672, 256, 32},
		{1180672, 256, 32},
		{3673088, 512, 16}, {4720640, 512, 16}, {4720640, 512, 16},
		{2360320, 256, 32}, {590336, 128, 64}, {147712, 64, 128}, {46208, 32, 256}, {6976, 16, 512},
	}
	for i, w := range want {
		if out := last[i+1]; blocks[i+1] != w.params || out[0] != w.channels || out[1] != w.side {
			t.Errorf("block %d has %d parameters and gives %v, want %+v", i+1, blocks[i+1], out, w)
		}
	}
}

// Mask R-CNN's pyramid has five levels of a padded photo of 800 x 1333.
func TestPublishedPyramid(t *testing.T) {
	cfg := build(t, "maskrcnn", models.Overrides{})
	want := map[string][2]int64{
		"backbone.fpn.layer_blocks.0": {200, 336}, "backbone.fpn.layer_blocks.1": {100, 168},
		"backbone.fpn.layer_blocks.2": {50, 84}, "backbone.fpn.layer_blocks.3": {25, 42},
		"backbone.fpn.extra_blocks": {13, 21},
	}
	for _, l := range cfg.Layers {
		if w, ok := want[l.Name]; ok {
			delete(want, l.Name)
			if l.Out[0] != 256 || l.Out[1] != w[0] || l.Out[2] != w[1] {
				t.Errorf("%s gives %v, want 256 x %v", l.Name, l.Out, w)
			}
		}
	}
	if len(want) > 0 {
		t.Errorf("there is no %v", want)
	}
}
