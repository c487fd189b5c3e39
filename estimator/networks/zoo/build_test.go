package zoo

import (
	"math"
	"strings"
	"testing"

	"carma/configs/models"
	"carma/estimator/networks/graph"

	"pgregory.net/rapid"
)

func TestEveryNetwork(t *testing.T) {
	seen := map[string]string{}
	for _, c := range catalogue {
		for _, e := range c.Entries {
			for _, name := range append([]string{e.Name}, e.Aliases...) {
				if other := seen[graph.Fold(name)]; other != "" {
					t.Errorf("%s is a name of %s and of %s", name, other, e.Name)
				}
				seen[graph.Fold(name)] = e.Name
				if cfg := build(t, name, models.Overrides{}); cfg.Name != e.Name {
					t.Errorf("%s builds %s, want %s", name, cfg.Name, e.Name)
				}
			}
		}
	}
	if len(Names()) < 50 {
		t.Errorf("the catalogue has %d networks", len(Names()))
	}
}

func TestNames(t *testing.T) {
	for name, want := range map[string]string{
		"ResNet-50":                "resnet50",
		"EFFICIENTNET":             "efficientnet_b0",
		"inception":                "inception_v3",
		"xlnet_base_cased":         "xlnet_base",
		"llama3.2-1b":              "llama_1b",
		"MobileNet.V3-Small":       "mobilenet_v3_small",
		"mlp_300x7":                "mlp_300x7",
		"mnist-mlp-512x2":          "mlp_512x2",
		"resnet18/CIFAR-100":       "resnet18/cifar100",
		"gpt2/wikitext-2":          "gpt2/wikitext2",
		"vit_base_patch16_224":     "vit_base",
		"efficientnet-b0/imagenet": "efficientnet_b0/imagenet",
	} {
		if cfg := build(t, name, models.Overrides{}); cfg.Name != want {
			t.Errorf("%s is %s, want %s", name, cfg.Name, want)
		}
	}
}

func TestDatasets(t *testing.T) {
	for _, c := range []struct {
		name           string
		image, classes int64
	}{
		{"resnet18/cifar100", 32, 100},
		{"resnet18/imagenet", 224, 1000},
		{"inception_v3/imagenet", 299, 1000},
		{"xception/imagenet", 299, 1000},
		{"mnist_cnn/mnist", 28, 10},
	} {
		cfg := build(t, c.name, models.Overrides{})
		logits := cfg.Layers[len(cfg.Layers)-2].Out
		if got := cfg.Inputs[0].Shape[1]; got != c.image || logits[0] != c.classes {
			t.Errorf("%s takes %d pixels to %d classes, want %d to %d", c.name, got, logits[0], c.image, c.classes)
		}
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		name string
		o    models.Overrides
		want string
	}{
		{"resnt50", models.Overrides{}, `unknown model "resnt50"; the nearest names: resnet50`},
		{"resnet50/cifar1000", models.Overrides{}, "cifar100"},
		{"resnet50/wikitext2", models.Overrides{}, "is text"},
		{"bert_base/imagenet", models.Overrides{}, "is images"},
		{"vgg16", models.Overrides{Image: 16}, "the image is too small"},
		{"inception_v3", models.Overrides{Image: 32}, "the image is too small"},
		{"vit_base", models.Overrides{Image: 100}, "not a multiple of 16"},
		{"unet", models.Overrides{Image: 100}, "not a multiple of 32"},
		{"bert_base", models.Overrides{Sequence: 513}, "longer than its 512 positions"},
		{"gpt2", models.Overrides{Sequence: 1}, "no next one"},
		{"bert_base", models.Overrides{Image: 224}, "has no setting image"},
		{"resnet50", models.Overrides{Vocabulary: 224}, "has no setting vocabulary"},
		{"resnet50", models.Overrides{Batch: -1}, "batch is -1"},
		{"resnet50", models.Overrides{Image: -1}, "image is -1"},
		{"resnet50", models.Overrides{LoRA: 8}, "adapters"},
		{"mlp_512x2", models.Overrides{LoRA: 8}, "adapters"},
		{"resnet50", models.Overrides{GPUs: -2}, "GPUs is -2"},
		{"mlp_0x2", models.Overrides{}, "unknown model"},
	} {
		_, err := Build(c.name, c.o)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("Build(%s, %+v) says %v, want ... %s ...", c.name, c.o, err, c.want)
		}
	}
}

func TestAdapters(t *testing.T) {
	for name, want := range map[string]int64{
		// The rank, 8, times (in + out) of each adapted projection, times the
		// layers.
		"llama3_8b": 32 * 8 * (4096 + 4096 + 4096 + 1024),
		"bert_base": 12 * 2 * 8 * (768 + 768),
		"gpt2":      12 * 8 * (768 + 3*768),
		"vit_base":  12 * 8 * (768 + 3*768),
		"t5_small":  3 * 6 * 2 * 8 * (512 + 512),
	} {
		cfg := build(t, name, models.Overrides{LoRA: 8})
		var trained int64
		for _, l := range cfg.Layers {
			for _, p := range l.Params {
				if !l.Frozen {
					trained += p
				}
			}
		}
		if trained != want {
			t.Errorf("%s trains %d parameters, want %d", name, trained, want)
		}
		plain := build(t, name, models.Overrides{})
		if params(cfg) != params(plain)+trained {
			t.Errorf("%s has %d parameters with adapters, %d without", name, params(cfg), params(plain))
		}
		if keptBytes(cfg) >= keptBytes(plain) {
			t.Errorf("%s keeps %d bytes with adapters, %d without", name, keptBytes(cfg), keptBytes(plain))
		}
	}
}

func TestOverrides(t *testing.T) {
	on := true
	o := models.Overrides{
		Batch: 7, GPUs: 2, Precision: models.AMP, Optimizer: models.SGD, Implementation: "fused",
		Parallel: models.DDP, Checkpointing: &on,
	}
	want := models.Train{
		Batch: 7, GPUs: 2, Precision: models.AMP, Optimizer: models.SGD, Implementation: "fused",
		Parallel: models.DDP, Checkpointing: true,
	}
	if got := build(t, "resnet18", o).Train; got != want {
		t.Errorf("the training is %+v, want %+v", got, want)
	}
}

// With any overrides there is an error or a consistent configuration whose blocks
// are numbered from 1 without gaps.
func TestAnyOverrides(t *testing.T) {
	names := append(Names(), "nonsense", "mlp_3x9")
	sizes := rapid.OneOf(
		rapid.IntRange(-1, 600), rapid.IntRange(-1, 600), rapid.SampledFrom([]int{math.MaxInt, math.MinInt, 1 << 16}))
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(names).Draw(t, "name")
		if set := rapid.SampledFrom([]string{"", "", "cifar100", "imagenet", "wikitext2", "squad", "x"}).Draw(t, "set"); set != "" {
			name += "/" + set
		}
		o := models.Overrides{}
		for _, field := range []*int{&o.Batch, &o.Image, &o.Sequence, &o.Classes, &o.Vocabulary, &o.LoRA, &o.GPUs} {
			if rapid.IntRange(0, 3).Draw(t, "change") == 0 {
				*field = sizes.Draw(t, "value")
			}
		}
		cfg, err := Build(name, o)
		if err != nil {
			if cfg != nil || strings.Contains(err.Error(), "\n") {
				t.Fatalf("%s: %v", name, err)
			}
			return
		}
		if problem := consistent(cfg); problem != "" {
			t.Fatalf("%s %+v: %s", name, o, problem)
		}
		last := 0
		for _, l := range cfg.Layers {
			if l.Block > last+1 {
				t.Fatalf("%s: block %d comes after %d", name, l.Block, last)
			}
			last = max(last, l.Block)
		}
		if params(cfg) < 1 || keptBytes(cfg) < 1 {
			t.Fatalf("%s %+v: %d parameters, %d bytes kept", name, o, params(cfg), keptBytes(cfg))
		}
	})
}

func FuzzBuild(f *testing.F) {
	f.Add("resnet50/cifar10", 64, 32, 0)
	f.Add("bert-base", 8, 0, 128)
	f.Add("mlp99999999999999999999x1", 0, 0, 0)
	f.Fuzz(func(t *testing.T, name string, batch, image, sequence int) {
		cfg, err := Build(name, models.Overrides{Batch: batch, Image: image, Sequence: sequence})
		if err == nil && consistent(cfg) != "" {
			t.Errorf("%s: %s", name, consistent(cfg))
		}
	})
}
