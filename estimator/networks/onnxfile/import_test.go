package onnxfile

import (
	"bytes"
	"compress/gzip"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"carma/configs/models"
	"carma/estimator/networks/zoo"
	"carma/estimator/step"
)

// file is a file of testdata; export.py made it.
func file(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name + ".onnx")
	if err == nil {
		return data
	}
	f, err := os.Open("testdata/" + name + ".onnx.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	if data, err = io.ReadAll(z); err != nil {
		t.Fatal(err)
	}
	return data
}

func imported(t testing.TB, name string, o models.Overrides) *models.Config {
	t.Helper()
	c, err := Import(name+".onnx", bytes.NewReader(file(t, name)), o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func counts(c *models.Config) map[string]int {
	n := map[string]int{}
	for i := range c.Layers {
		n[c.Layers[i].Type]++
	}
	return n
}

// The networks were exported by both exporters of PyTorch 2.15. params is
// PyTorch's own count.
func TestImport(t *testing.T) {
	for _, tt := range []struct {
		name   string
		o      models.Overrides
		family models.Family
		params int64
		input  []int64
		types  map[string]int // how many layers of a type
	}{
		{"resnet18.dynamo", models.Overrides{}, models.Conv, 11_689_512, []int64{3, 224, 224}, map[string]int{models.Convolution: 20, models.BatchNorm: 20, models.Add: 8}},
		{"resnet18.legacy", models.Overrides{}, models.Conv, 11_689_512, []int64{3, 224, 224}, map[string]int{models.Convolution: 20, models.BatchNorm: 20, models.Add: 8}},
		// 4,800 biases take the place of 9,600 parameters of batch norms.
		{"resnet18.folded", models.Overrides{}, models.Conv, 11_689_512 - 9_600 + 4_800, []int64{3, 224, 224}, map[string]int{models.Convolution: 20, models.BatchNorm: 0}},
		{"mobilenet_v2.dynamo", models.Overrides{}, models.Conv, 3_504_872, []int64{3, 224, 224}, map[string]int{models.Convolution: 52, models.ReLU6: 35, models.Dropout: 1}},
		{"mobilenet_v2.legacy", models.Overrides{}, models.Conv, 3_504_872, []int64{3, 224, 224}, map[string]int{models.Convolution: 52, models.ReLU6: 35, models.Dropout: 1}},
		{"vit_b_16.dynamo", models.Overrides{}, models.Transformer, 86_567_656, []int64{3, 224, 224}, map[string]int{models.Attention: 12, models.GELU: 12, models.LayerNorm: 25, models.Linear: 49, models.Mul: 0, models.Copy: 0}},
		{"vit_b_16.legacy", models.Overrides{}, models.Transformer, 86_567_656, []int64{3, 224, 224}, map[string]int{models.Attention: 12, models.GELU: 12, models.LayerNorm: 25, models.Linear: 49, models.Mul: 0, models.Copy: 0}},
		{"bert.dynamo", models.Overrides{Sequence: 64}, models.Transformer, 559_208, []int64{64}, map[string]int{models.Attention: 2, models.GELU: 3, models.LayerNorm: 6, models.Linear: 14, models.Embedding: 1}},
		{"bert.legacy", models.Overrides{Sequence: 64}, models.Transformer, 559_208, []int64{64}, map[string]int{models.Attention: 2, models.GELU: 3, models.LayerNorm: 6, models.Linear: 14, models.Embedding: 1}},
		{"lstm.dynamo", models.Overrides{Sequence: 20}, models.Other, 617_424, []int64{20}, map[string]int{models.Recurrent: 2, models.Embedding: 1, models.Linear: 1}},
		{"lstm.legacy", models.Overrides{Sequence: 20}, models.Other, 617_424, []int64{20}, map[string]int{models.Recurrent: 2, models.Embedding: 1, models.Linear: 1}},
	} {
		tt.o.Batch = 16
		c := imported(t, tt.name, tt.o)
		if c.Origin != "onnx" || c.Family != tt.family || c.TrainableParams() != tt.params || c.Train.Batch != 16 || c.Name != tt.name {
			t.Errorf("%s: %s, %s, %s, %d params, batch %d", tt.name, c.Name, c.Origin, c.Family, c.TrainableParams(), c.Train.Batch)
		}
		if !slices.Equal(c.Inputs[0].Shape, tt.input) {
			t.Errorf("%s: input %v", tt.name, c.Inputs[0].Shape)
		}
		for kind, want := range tt.types {
			if n := counts(c)[kind]; n != want {
				t.Errorf("%s: %d layers of type %s, want %d", tt.name, n, kind, want)
			}
		}
		folded := slices.ContainsFunc(c.Warnings, func(w string) bool { return strings.Contains(w, "folded") })
		if want := tt.name == "resnet18.folded"; folded != want {
			t.Errorf("%s: warned of folded batch norms: %t; %q", tt.name, folded, c.Warnings)
		}
	}
}

// Shapes do not contain the dimension of the samples, wherever it is in the
// graph.
func TestShapes(t *testing.T) {
	c := imported(t, "lstm.legacy", models.Overrides{Sequence: 20, Batch: 3})
	for i := range c.Layers {
		l := &c.Layers[i]
		if l.Type == models.Recurrent && !slices.Equal(l.Out, []int64{20, 1, 128}) || l.Whole {
			t.Errorf("%+v", l)
		}
		if l.Type == models.Recurrent && (l.Cell == nil || *l.Cell != models.Cell{Kind: "lstm", Hidden: 128, Directions: 1}) {
			t.Errorf("cell %+v", l.Cell)
		}
	}
	c = imported(t, "vit_b_16.dynamo", models.Overrides{})
	for i := range c.Layers {
		l := &c.Layers[i]
		if l.Type == models.Linear && i > 3 && i < len(c.Layers)-1 && l.Out[0] != 197 || l.Whole != (l.Type == models.OtherLayer) {
			t.Errorf("%+v", l)
		}
	}
}

// The inferred shapes agree with the exporter's for the values inside the graph.
func TestAgreesWithValueInfo(t *testing.T) {
	names, err := filepath.Glob("testdata/*.onnx*")
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, name := range names {
		name, _, _ = strings.Cut(filepath.Base(name), ".onnx")
		g, err := decode(bytes.NewReader(file(t, name)))
		if err != nil {
			t.Fatal(err)
		}
		n, err := connect(g)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := n.place(models.Overrides{}); err != nil {
			t.Fatal(err)
		}
		if err := n.shapes(); err != nil {
			t.Fatal(err)
		}
		for i := range n.values {
			v := &n.values[i]
			if want, ok := n.resolve(v.info); ok && v.from >= 0 && v.known {
				if compared++; !slices.Equal(v.shape, want) && product(want) > 0 {
					t.Errorf("%s: %s is %v, the file says %v", name, v.name, v.shape, want)
				}
				if v.kind != v.info.kind {
					t.Errorf("%s: %s is of kind %d, the file says %d", name, v.name, v.kind, v.info.kind)
				}
			}
		}
	}
	if compared < 500 {
		t.Errorf("only %d values were compared", compared)
	}
}

// The simulated step takes about the same memory as that of the catalogue's
// network. On 21 November 2026 they were at most 0.6 % apart.
func TestMemoryAsTheCatalogue(t *testing.T) {
	env := &step.Environment{CuBLAS: 8 << 20}
	worst := 0.0
	for _, tt := range []struct{ name, known string }{
		{"resnet18.dynamo", "resnet18"}, {"resnet18.legacy", "resnet18"}, {"mobilenet_v2.dynamo", "mobilenet_v2"},
		{"mobilenet_v2.legacy", "mobilenet_v2"}, {"vit_b_16.dynamo", "vit_base"}, {"vit_b_16.legacy", "vit_base"},
	} {
		for _, o := range []models.Overrides{
			{Batch: 1}, {Batch: 8}, {Batch: 64}, {Batch: 256}, {Batch: 32, Precision: models.AMP}, {Batch: 32, Optimizer: models.SGD},
		} {
			want, err := zoo.Build(tt.known, o)
			if err != nil {
				t.Fatal(err)
			}
			a, err := step.Simulate(imported(t, tt.name, o), env)
			if err != nil {
				t.Fatal(err)
			}
			b, err := step.Simulate(want, env)
			if err != nil {
				t.Fatal(err)
			}
			off := math.Abs(float64(a.Allocated)/float64(b.Allocated) - 1)
			worst = max(worst, off)
			if off > 0.02 {
				t.Errorf("%s, %+v: %d bytes, the catalogue's %d", tt.name, o, a.Allocated, b.Allocated)
			}
		}
	}
	t.Logf("at most %.2f %% apart", 100*worst)
}

// It imports the file with the most nodes.
func BenchmarkImport(b *testing.B) {
	for _, name := range []string{"resnet18.legacy", "vit_b_16.legacy"} {
		data := file(b, name)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Import(name, bytes.NewReader(data), models.Overrides{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
