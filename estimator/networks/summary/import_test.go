package summary

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"carma/configs/models"
)

// The texts in testdata were printed by torchsummary 1.5.1, torchinfo 1.8.0,
// pytorch-model-summary 0.1.2 and PyTorch 2. params is PyTorch's own count.
func TestImport(t *testing.T) {
	for _, tt := range []struct {
		file, origin string
		o            models.Overrides
		family       models.Family
		params, act  int64
		batch        int
		input        []int64
	}{
		{"small.torchsummary.txt", models.FromTorchsummary, models.Overrides{}, models.Conv, 43_722, 17_650, 64, []int64{1, 28, 28}},
		{"small.pms.txt", models.FromTorchsummary, models.Overrides{Batch: 8}, models.Conv, 43_722, 17_650, 8, []int64{1, 28, 28}},
		{"small.torchinfo.txt", models.FromTorchinfo, models.Overrides{}, models.Conv, 43_722, 17_650, 16, []int64{1, 28, 28}},
		{"small.torchinfo_cols.txt", models.FromTorchinfo, models.Overrides{}, models.Conv, 43_722, 17_650, 16, []int64{1, 28, 28}},
		{"small.tree.txt", models.FromTree, models.Overrides{Image: 28, Batch: 4}, models.Conv, 43_722, 17_650, 4, []int64{1, 28, 28}},
		{"resnet18.torchsummary.txt", models.FromTorchsummary, models.Overrides{}, models.Conv, 11_689_512, 7_477_736, 1, []int64{3, 224, 224}},
		{"resnet18.torchinfo.txt", models.FromTorchinfo, models.Overrides{}, models.Conv, 11_689_512, 7_477_736, 32, []int64{3, 224, 224}},
		// Inception's 11 concatenations are 2,473,024 elements.
		{"inception.torchsummary.txt", models.FromTorchsummary, models.Overrides{}, models.Conv, 23_834_568, 18_516_328 + 2_473_024, 1, []int64{3, 299, 299}},
		// EfficientNet's 16 scalings are 2,306,528 elements.
		{"effb0.torchsummary.txt", models.FromTorchsummary, models.Overrides{}, models.Conv, 5_288_548, 19_874_240 + 2_306_528, 32, []int64{3, 224, 224}},
		// The decoder of 3,937,338 parameters shares the embedding's weights. A
		// summary does not show that.
		{"bert.torchinfo.txt", models.FromTorchinfo, models.Overrides{}, models.Transformer, 4_416_698 + 128*30522, 2_305_664, 8, []int64{64}},
		{"bert.tree.txt", models.FromTree, models.Overrides{Sequence: 64}, models.Transformer, 4_416_698 - 30522, 2_322_048, 1, []int64{64}},
		{"gpt2.tree.txt", models.FromTree, models.Overrides{Sequence: 64}, models.Transformer, 6_960_768, 3_503_168, 1, []int64{64}},
	} {
		c := importFile(t, tt.file, tt.o)
		if c.Origin != tt.origin || c.Family != tt.family || c.Params() != tt.params || c.Activations() != tt.act || c.Train.Batch != tt.batch {
			t.Errorf("%s: %s, %s, %d params, %d activations, batch %d; want %+v", tt.file, c.Origin, c.Family, c.Params(), c.Activations(), c.Train.Batch, tt)
		}
		if !slices.Equal(c.Inputs[0].Shape, tt.input) {
			t.Errorf("%s: input %v, want %v", tt.file, c.Inputs[0].Shape, tt.input)
		}
		if want := strings.TrimSuffix(tt.file, ".txt"); c.Name != want || len(c.Warnings) == 0 {
			t.Errorf("%s: name %s, warnings %q", tt.file, c.Name, c.Warnings)
		}
		for i := range c.Layers {
			if l := &c.Layers[i]; l.Type == models.OtherLayer || l.Type == models.Convolution && l.Kernel == nil {
				t.Errorf("%s: layer %d is %+v", tt.file, i, l)
			}
		}
	}
}

// layer finds a layer by its name.
func layer(t *testing.T, c *models.Config, name string) *models.Layer {
	t.Helper()
	for i := range c.Layers {
		if c.Layers[i].Name == name {
			return &c.Layers[i]
		}
	}
	t.Fatalf("%s has no layer %s", c.Name, name)
	return nil
}

func importFile(t *testing.T, file string, o models.Overrides) *models.Config {
	t.Helper()
	text, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Import("testdata/"+file, string(text), o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Facts that the tables lack are inferred from the parameters.
func TestInferred(t *testing.T) {
	r := importFile(t, "resnet18.torchsummary.txt", models.Overrides{})
	for name, want := range map[string]models.Layer{
		"Conv2d-1":  {Out: []int64{64, 112, 112}, Params: []int64{9408}, Kernel: []int64{7, 7}, Stride: 2},
		"Conv2d-24": {Out: []int64{128, 28, 28}, Params: []int64{8192}, Kernel: []int64{1, 1}, Stride: 2}, // the shortcut
		"Linear-68": {Out: []int64{1000}, Params: []int64{512000, 1000}},
	} {
		got := *layer(t, r, name)
		got.Name, got.Type = "", ""
		if name == "Conv2d-24" {
			if len(got.Inputs) != 1 || r.Layers[got.Inputs[0]].Name != "ReLU-17" && r.Layers[got.Inputs[0]].Out[0] != 64 {
				t.Errorf("the shortcut comes from %v", got.Inputs)
			}
			got.Inputs = nil
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
	}
	e := importFile(t, "effb0.torchsummary.txt", models.Overrides{})
	if l := layer(t, e, "Conv2d-4"); l.Groups != 32 || !slices.Equal(l.Kernel, []int64{3, 3}) {
		t.Errorf("not depthwise: %+v", l)
	}
	if l := layer(t, e, "SqueezeExcitation-12"); l.Type != models.Mul || len(l.Inputs) != 2 || !slices.Equal(e.Layers[l.Inputs[0]].Out, l.Out) {
		t.Errorf("not a scaling: %+v", l)
	}
	b := importFile(t, "bert.tree.txt", models.Overrides{Sequence: 64})
	if l := layer(t, b, "bert.encoder.layer.1.attention.self.value.attention"); l.Type != models.Attention || len(l.Inputs) != 3 || l.Heads != 2 {
		t.Errorf("not the attention: %+v", l)
	}
	if l := layer(t, b, "cls.predictions.decoder"); !l.Tied || !slices.Equal(l.Out, []int64{64, 30522}) {
		t.Errorf("not tied: %+v", l)
	}
	if l := layer(t, b, "bert.embeddings.position_embeddings"); !l.Whole {
		t.Errorf("positions do not depend on the batch: %+v", l)
	}
}

func TestImportFaults(t *testing.T) {
	summary, err := os.ReadFile("testdata/small.torchsummary.txt")
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.ReadFile("testdata/small.torchinfo.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ text, want string }{
		{"", "x.txt:1: neither a configuration, nor a summary "},
		{"hello\nworld\n", "x.txt:1: neither a configuration, nor a summary "},
		{strings.Replace(string(summary), "[64, 8, 26, 26]", "64, 8, 26, 26", 1), `x.txt:4: not a row of the table: "Conv2d-1 `},
		{strings.Replace(string(summary), "[64, 8, 26, 26]", "[64, 8, x, 26]", 1), `x.txt:4: a shape or a number that cannot be in "Conv2d-1 `},
		{strings.Replace(string(summary), "43,296", "99999999999999999999", 1), `x.txt:8: a shape or a number that cannot be`},
		{strings.Join(strings.Split(string(summary), "\n")[:3], "\n"), `x.txt:2: no layer after the head of the table; `},
		{strings.Replace(string(info), "[16, 8, 26, 26]", "[16, 8, ?]", 1), `x.txt:5: Output Shape: cannot be "[16, 8, ?]"`},
		{strings.Replace(string(info), "43,296", "many", 1), `x.txt:9: Param #: cannot be "many"`},
		{"Net(\n  (a): Linear(in_features=2, out_features=3)\n", `x.txt:3: the module tree does not end; the text is cut off`},
		{"Net(\n  (a): ReLU()\n)\n", `x.txt: no convolution, linear layer or embedding in the module tree`},
		{"Net(\n  (0-999999): 1000000 x B(\n    (0-9): 10 x L(\n (a): Linear(2, 3)\n ) ) )\n)\n)\n", `x.txt:`},
	} {
		_, err := Import("x.txt", tt.text, models.Overrides{})
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("got  %v\nwant %s", err, tt.want)
		}
	}
}

func BenchmarkImport(b *testing.B) {
	for _, file := range []string{"inception.torchsummary.txt", "resnet18.torchinfo.txt", "gpt2.tree.txt"} {
		data, err := os.ReadFile("testdata/" + file)
		if err != nil {
			b.Fatal(err)
		}
		// This tree has the depth of GPT-2 XL.
		text := strings.Replace(string(data), "(0-1): 2 x GPT2Block", "(0-47): 48 x GPT2Block", 1)
		b.Run(file, func(b *testing.B) {
			for b.Loop() {
				if _, err := Import(file, text, models.Overrides{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
