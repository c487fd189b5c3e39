package onnxfile

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"carma/configs/models"
)

func f32(v float32) uint32 { return math.Float32bits(v) }

// types are the types of the layers made from a graph with the input x.
func types(t *testing.T, x []byte, parts ...[]byte) []string {
	t.Helper()
	c, err := read(onnx(append([][]byte{x}, parts...)...), models.Overrides{})
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for i := range c.Layers {
		list = append(list, c.Layers[i].Type)
	}
	return list
}

func TestPatterns(t *testing.T) {
	x := typed(11, "x", kindFloat, -1, 6, 8)
	constants := [][]byte{scalar("half", f32(0.5)), scalar("one", f32(1)), scalar("two", f32(2)), scalar("root", f32(1.4142)), scalar("three", f32(3)), scalar("eps", f32(1e-5))}
	gelu := func(last string) [][]byte {
		return [][]byte{
			op("Div", "a", in("x", "root"), in("a")), op("Erf", "b", in("a"), in("b")), op("Add", "c", in("b", "one"), in("c")),
			op("Mul", "d", in("x", "c"), in("d")), op("Mul", "e", in("d", "half"), in(last)),
		}
	}
	norm := [][]byte{
		op("ReduceMean", "", in("x"), in("m"), attrInts("axes", -1)), op("Sub", "", in("x", "m"), in("d")), op("Pow", "", in("d", "two"), in("p")),
		op("ReduceMean", "", in("p"), in("v"), attrInts("axes", -1)), op("Add", "", in("v", "eps"), in("ve")), op("Sqrt", "", in("ve"), in("s")),
		op("Div", "", in("d", "s"), in("n")), weight("ln.weight", 8), weight("ln.bias", 8), op("Mul", "", in("n", "ln.weight"), in("nw")),
	}
	rms := [][]byte{
		op("Pow", "", in("x", "two"), in("p")), op("ReduceMean", "", in("p"), in("v"), attrInts("axes", -1)), op("Add", "", in("v", "eps"), in("ve")),
		op("Sqrt", "", in("ve"), in("s")), op("Reciprocal", "", in("s"), in("r")), op("Mul", "", in("x", "r"), in("n")), weight("norm.weight", 8),
		op("Mul", "", in("norm.weight", "n"), in("y")),
	}
	for name, tt := range map[string]struct {
		parts [][]byte
		want  []string
	}{
		"gelu": {gelu("y"), []string{"gelu"}},
		// Another operator uses a value inside the pattern.
		"gelu, but":      {append(gelu("y"), op("Relu", "", in("c"), in("z"))), []string{"mul", "other", "add", "mul", "mul", "relu"}},
		"gelu given out": {append(gelu("y"), typed(12, "d", kindFloat)), []string{"gelu", "mul"}},
		"tanh gelu": {[][]byte{
			op("Pow", "", in("x", "three"), in("a")), op("Mul", "", in("a", "half"), in("b")), op("Add", "", in("x", "b"), in("c")),
			op("Mul", "", in("c", "half"), in("d")), op("Tanh", "", in("d"), in("e")), op("Add", "", in("e", "one"), in("f")),
			op("Mul", "", in("x", "half"), in("g")), op("Mul", "", in("g", "f"), in("y")),
		}, []string{"gelu"}},
		"silu":                       {[][]byte{op("Sigmoid", "", in("x"), in("s")), op("Mul", "", in("x", "s"), in("y"))}, []string{"silu"}},
		"gate of other":              {[][]byte{op("Relu", "", in("x"), in("r")), op("Sigmoid", "", in("x"), in("s")), op("Mul", "", in("r", "s"), in("y"))}, []string{"relu", "sigmoid", "mul"}},
		"hard swish":                 {[][]byte{op("HardSigmoid", "", in("x"), in("s")), op("Mul", "", in("x", "s"), in("y"))}, []string{"hard_swish"}},
		"mish":                       {[][]byte{op("Softplus", "", in("x"), in("p")), op("Tanh", "", in("p"), in("t")), op("Mul", "", in("x", "t"), in("y"))}, []string{"mish"}},
		"layer norm":                 {append(norm, op("Add", "", in("nw", "ln.bias"), in("y"))), []string{"layer_norm"}},
		"layer norm, mean given out": {append(norm[:10:10], typed(12, "m", kindFloat)), []string{"mean", "add", "other", "mean", "add", "other", "mul", "other", "mul"}},
		"rms norm":                   {rms, []string{"rms_norm"}},
		"linear": {[][]byte{weight("l.weight", 8, 3), weight("l.bias", 3), op("MatMul", "", in("x", "l.weight"), in("a")),
			op("Add", "", in("l.bias", "a"), in("y"))}, []string{"linear"}},
		"attention": {[][]byte{
			op("Transpose", "", in("x"), in("k"), attrInts("perm", 0, 2, 1)), op("MatMul", "", in("x", "k"), in("s")), op("Mul", "", in("s", "half"), in("m")),
			op("Softmax", "", in("m"), in("p")), op("MatMul", "", in("p", "x"), in("y")),
		}, []string{"attention"}},
		"attention with its scores given out": {[][]byte{
			op("Transpose", "", in("x"), in("k"), attrInts("perm", 0, 2, 1)), op("MatMul", "", in("x", "k"), in("s")),
			op("Softmax", "", in("s"), in("p")), op("MatMul", "", in("p", "x"), in("y")), typed(12, "p", kindFloat),
		}, []string{"view", "matmul", "softmax", "matmul"}},
		"reshaping a transposed view copies": {[][]byte{
			op("Transpose", "", in("x"), in("k"), attrInts("perm", 0, 2, 1)), ints("flat", 0, -1), op("Reshape", "", in("k", "flat"), in("y")),
		}, []string{"view", "copy"}},
	} {
		if got := types(t, x, append(constants, tt.parts...)...); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}

// A trained tensor that is added to the scores stays a parameter.
func TestAttentionBias(t *testing.T) {
	c, err := read(onnx(typed(11, "x", kindFloat, -1, 6, 8), weight("relative.table", 1, 6, 6),
		op("Transpose", "", in("x"), in("k"), attrInts("perm", 0, 2, 1)), op("MatMul", "", in("x", "k"), in("s")),
		op("Add", "", in("s", "relative.table"), in("m")), op("Softmax", "", in("m"), in("p")), op("MatMul", "", in("p", "x"), in("y"))), models.Overrides{})
	if err != nil || len(c.Layers) != 1 || c.Params() != 36 || c.Layers[0].Heads != 1 {
		t.Errorf("%+v, %v", c, err)
	}
}

// A matrix used twice is tied. A shared vector is not, nor a matrix that an
// exporter has copied by Identity.
func TestTied(t *testing.T) {
	c, err := read(onnx(typed(11, "ids", kindInt64, -1, 6), weight("table.weight", 50, 8), weight("a.bias", 8),
		op("Gather", "", in("table.weight", "ids"), in("e")), op("Add", "", in("e", "a.bias"), in("x")), op("Identity", "", in("a.bias"), in("b.bias")),
		op("Add", "", in("x", "b.bias"), in("x2")), op("Transpose", "", in("table.weight"), in("w"), attrInts("perm", 1, 0)),
		op("MatMul", "", in("x2", "w"), in("y"))), models.Overrides{})
	if err != nil {
		t.Fatal(err)
	}
	if last := c.Layers[len(c.Layers)-1]; c.Params() != 50*8+8+8 || !last.Tied || last.Type != models.Linear {
		t.Errorf("%d parameters; %+v", c.Params(), last)
	}
}

// A dimension with only a name is the sequence or the image.
func TestNamedDimensions(t *testing.T) {
	image := onnx(typed(11, "x", kindFloat, -1, 3, -2, -3), weight("c.weight", 4, 3, 3, 3), op("Conv", "", in("x", "c.weight"), in("y")))
	c, err := read(image, models.Overrides{Image: 12, Batch: 5})
	if err != nil || !reflect.DeepEqual(c.Inputs[0].Shape, []int64{3, 12, 12}) || !reflect.DeepEqual(c.Layers[0].Out, []int64{4, 10, 10}) {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err = read(image, models.Overrides{}); err != nil || c.Layers[0].Out[1] != 222 || len(c.Warnings) != 3 {
		t.Errorf("%+v, %v", c, err)
	}
	// The samples may be merged with another dimension.
	merged := onnx(typed(11, "x", kindFloat, 6, 4), ints("s", 24), op("Reshape", "", in("x", "s"), in("r")), op("Relu", "", in("r"), in("y")))
	if c, err = read(merged, models.Overrides{}); err != nil || !reflect.DeepEqual(c.Layers[1].Out, []int64{4}) || c.Layers[1].Whole {
		t.Errorf("%+v, %v", c, err)
	}
	// The shapes are for 6 samples: one sample has a sixth of each tensor.
	six := onnx(typed(11, "x", kindFloat, 6, 4), ints("s", 2, 3, 4), op("Reshape", "", in("x", "s"), in("r")), op("Relu", "", in("x"), in("y")))
	if c, err = read(six, models.Overrides{}); err != nil || c.Train.Batch != 6 || !reflect.DeepEqual(c.Layers[1].Out, []int64{4}) || c.Layers[1].Whole {
		t.Errorf("%+v, %v", c, err)
	}
}

// Shapes are computed through the operators that exporters use for them.
func TestFolding(t *testing.T) {
	c, err := read(onnx(typed(11, "x", kindFloat, -1, 6, 8), ints("zero", 0), ints("two", 2), ints("minus", -1),
		op("Shape", "", in("x"), in("s")), op("Gather", "", in("s", "two"), in("w")), op("Slice", "", in("s", "zero", "two"), in("front")),
		op("Div", "", in("w", "two"), in("h")), op("Concat", "", in("front", "two", "h"), in("to"), attrInt("axis", 0)),
		op("Reshape", "", in("x", "to"), in("y"))), models.Overrides{})
	if err != nil || !reflect.DeepEqual(c.Layers[len(c.Layers)-1].Out, []int64{6, 2, 4}) {
		t.Errorf("%+v, %v", c, err)
	}
}

// An unknown operator needs the output's shape in the file.
func TestUnknownOperator(t *testing.T) {
	c, err := read(onnx(typed(11, "x", kindFloat, -1, 6), weight("f.weight", 6, 6), op("Frobnicate", "f", in("x", "f.weight"), in("y")),
		typed(13, "y", kindFloat, -1, 9), op("Relu", "", in("y"), in("z"))), models.Overrides{})
	if err != nil || c.Layers[0].Type != models.OtherLayer || c.Params() != 36 || !reflect.DeepEqual(c.Layers[0].Out, []int64{9}) {
		t.Fatalf("%+v, %v", c, err)
	}
	if c.Warnings[0] != "operator Frobnicate is not understood: kept as other, with the shape that the file tells" {
		t.Errorf("%q", c.Warnings)
	}
}

// Equal numbers in the place of weights count as weights.
func TestFilledWeights(t *testing.T) {
	c, err := read(onnx(typed(11, "x", kindFloat, -1, 3, 8, 8), ints("shape", 4, 3, 3, 3), op("ConstantOfShape", "", in("shape"), in("w")),
		op("Conv", "", in("x", "w"), in("y"))), models.Overrides{})
	if err != nil || c.Params() != 108 {
		t.Errorf("%+v, %v", c, err)
	}
}

// An equal matrix that the exporter returns by Identity counts as another one.
func TestDuplicate(t *testing.T) {
	c, err := read(onnx(typed(11, "x", kindFloat, -1, 8), weight("a.weight", 8, 8), op("Identity", "", in("a.weight"), in("b.weight")),
		op("MatMul", "", in("x", "a.weight"), in("h")), op("MatMul", "", in("h", "b.weight"), in("y"))), models.Overrides{})
	if err != nil || c.Params() != 128 {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestTrained(t *testing.T) {
	for name, want := range map[string]bool{"bn.running_mean": false, "rotary.inv_freq": false, "attn_mask": false, "fc.weight": true, "onnx::MatMul_7": true} {
		if got := trained(&tensor{name: name, kind: kindFloat, dims: []int64{4, 4}}); got != want {
			t.Errorf("%s: %t", name, got)
		}
	}
	if trained(&tensor{name: "val_3", kind: kindFloat}) || !trained(&tensor{name: "logit_scale", kind: kindFloat}) || trained(&tensor{name: "a.b", kind: kindInt64}) {
		t.Error("numbers")
	}
}

// Some batch norms are folded, and one is left.
func TestPartlyFolded(t *testing.T) {
	parts := [][]byte{typed(11, "x", kindFloat, -1, 4, 8, 8), weight("n.weight", 4), weight("n.bias", 4), weight("n.running_mean", 4), weight("n.running_var", 4),
		op("BatchNormalization", "", in("x", "n.weight", "n.bias", "n.running_mean", "n.running_var"), in("v0"))}
	for i, v := range []string{"v0", "v1", "v2"} {
		w, b := "onnx::Conv_"+v, "onnx::Conv_b"+v
		parts = append(parts, weight(w, 4, 4, 1, 1), weight(b, 4), op("Conv", "", in(v, w, b), in("v"+string(rune('1'+i)))))
	}
	c, err := read(onnx(parts...), models.Overrides{})
	if err != nil || len(c.Warnings) == 0 || !strings.Contains(c.Warnings[0], "folded") || c.Params() != 8+3*20 {
		t.Errorf("%+v, %v", c, err)
	}
}
