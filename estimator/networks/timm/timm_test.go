package timm

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"testing"

	"carma/configs/models"
)

func TestEveryTableIsValid(t *testing.T) {
	names := Names()
	if len(names) == 0 || Provenance() == "" {
		t.Fatalf("%d models, provenance %q", len(names), Provenance())
	}
	if !slices.IsSorted(names) {
		t.Error("names are not sorted")
	}
	for _, name := range names {
		c, err := Build(name, 8)
		if err != nil {
			t.Error(err)
			continue
		}
		check(t, c)
	}
}

func check(t *testing.T, c *models.Config) {
	t.Helper()
	for i, l := range c.Layers {
		if !slices.Contains(models.Types(), l.Type) || len(l.Out) == 0 || len(l.Inputs) == 0 || l.Keeps == nil {
			t.Errorf("%s: layer %d: %+v", c.Name, i, l)
		}
		for _, in := range l.Inputs {
			if in < -1 || in >= i {
				t.Errorf("%s: layer %d takes layer %d", c.Name, i, in)
			}
		}
		for _, d := range l.Out {
			if d < 1 {
				t.Errorf("%s: layer %d: out %v", c.Name, i, l.Out)
			}
		}
	}
}

func TestBuildRefuses(t *testing.T) {
	if _, err := Build("no-such-model", 8); !errors.Is(err, ErrNotFound) {
		t.Errorf("unknown model: %v", err)
	}
	if _, err := Build(Names()[0], 0); err == nil {
		t.Error("batch 0 is taken")
	}
}

// The counts were published by the authors of the networks and by torchvision.
func TestParameterCounts(t *testing.T) {
	for name, want := range map[string]int64{
		"resnet18":                      11_689_512,
		"resnet34":                      21_797_672,
		"resnet50":                      25_557_032,
		"resnet101":                     44_549_160,
		"resnet152":                     60_192_808,
		"resnext50_32x4d":               25_028_904,
		"wide_resnet50_2":               68_883_240,
		"vgg11":                         132_863_336,
		"vgg16":                         138_357_544,
		"vgg19":                         143_667_240,
		"densenet121":                   7_978_856,
		"densenet169":                   14_149_480,
		"densenet201":                   20_013_928,
		"efficientnet_b0":               5_288_548,
		"efficientnet_b1":               7_794_184,
		"mobilenetv2_100":               3_504_872,
		"vit_base_patch16_224":          86_567_656,
		"vit_small_patch16_224":         22_050_664,
		"swin_tiny_patch4_window7_224":  28_288_354,
		"swin_small_patch4_window7_224": 49_606_258,
		"convnext_tiny":                 28_589_128,
		"convnext_base":                 88_591_464,
		"regnety_032":                   19_436_338,
	} {
		if !slices.Contains(Names(), name) {
			t.Logf("%s: no table", name)
			continue
		}
		c, err := Build(name, 1)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Params(); got != want {
			t.Errorf("%s: %d parameters, want %d", name, got, want)
		}
	}
}

// Written tables can be read again, and stay the same.
func TestRoundTrip(t *testing.T) {
	var all []Table
	for _, name := range []string{"resnet18", "vit_base_patch16_224", "resnet50", "vgg11", "convnext_tiny"} {
		table, err := tables().table(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, *table)
	}
	before, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := Write(&b, "by hand", all); err != nil {
		t.Fatal(err)
	}
	if after, err := json.Marshal(all); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the tables are changed (%v)", err)
	}
	var a archive
	if err := gob.NewDecoder(&b).Decode(&a); err != nil || a.Provenance != "by hand" || len(a.Chunks) != 2 {
		t.Fatalf("%q, %d chunks, %v", a.Provenance, len(a.Chunks), err)
	}
	for _, want := range all {
		if got, err := a.table(want.Name); err != nil || !reflect.DeepEqual(*got, want) {
			t.Errorf("%s: %+v, want %+v (%v)", want.Name, got, want, err)
		}
	}
}

func BenchmarkBuild(b *testing.B) {
	names := Names()
	for i := 0; b.Loop(); i++ {
		if _, err := Build(names[i%len(names)], 8); err != nil {
			b.Fatal(err)
		}
	}
}
