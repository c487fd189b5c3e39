package onnxfile

import (
	"bytes"
	"math"
	"runtime"
	"strings"
	"testing"

	"carma/configs/models"
)

// tiny is a linear layer.
func tiny(more ...[]byte) []byte {
	return onnx(append([][]byte{
		typed(11, "x", kindFloat, -1, 4), weight("fc.weight", 3, 4), weight("fc.bias", 3),
		op("Gemm", "fc", in("x", "fc.weight", "fc.bias"), in("y"), attrInt("transB", 1)),
	}, more...)...)
}

func read(data []byte, o models.Overrides) (*models.Config, error) {
	return Import("x.onnx", bytes.NewReader(data), o)
}

func TestTiny(t *testing.T) {
	c, err := read(tiny(), models.Overrides{Batch: 7})
	if err != nil || c.Params() != 15 || len(c.Layers) != 1 || c.Train.Batch != 7 || c.Origin != models.FromONNX || c.Family != models.MLP {
		t.Fatalf("%+v, %v", c, err)
	}
}

func TestFaults(t *testing.T) {
	huge := []int64{math.MaxInt64, math.MaxInt64, math.MaxInt64}
	x := typed(11, "x", kindFloat, 1, 4)
	for _, tt := range []struct {
		name string
		data []byte
		o    models.Overrides
		want string
	}{
		{"no graph", number(1, 8), models.Overrides{}, "no graph with operators in it; not an ONNX model"},
		{"no nodes", onnx(x), models.Overrides{}, "no graph with operators in it"},
		{"cut", tiny()[:40], models.Overrides{}, "damaged or cut off at byte "},
		{"two graphs", append(tiny(), onnx()...), models.Overrides{}, "a second graph"},
		{"crossing", append([]byte{8, 8, 0x3a, 4, 0x0a, 0x60, 0, 0}, make([]byte, 200)...), models.Overrides{}, "a field of 96 bytes in a part that has 2"},
		{"group", append(number(1, 8), 0x1b), models.Overrides{}, "wire type 3, which ONNX does not use"},
		{"dims", onnx(x, weight("w", huge...), op("MatMul", "m", in("x", "w"), in("y"))), models.Overrides{}, `tensor "w": a dimension of 9223372036854775807`},
		{"rank", onnx(x, weight("w", make([]int64, 40)...), op("MatMul", "m", in("x", "w"), in("y"))), models.Overrides{}, `tensor "w": 40 dimensions; at most 16`},
		{"elements", onnx(x, weight("w", 1<<40, 1<<40), op("MatMul", "m", in("x", "w"), in("y"))), models.Overrides{}, "has more than 2^50 elements"},
		{"negative", onnx(x, weight("w", -4), op("MatMul", "m", in("x", "w"), in("y"))), models.Overrides{}, "a dimension of -4"},
		{"missing", onnx(x, op("Relu", "r", in("z"), in("y"))), models.Overrides{}, `operator "r" (Relu): takes "z", which nothing makes`},
		{"cycle", onnx(x, op("Add", "a", in("x", "c"), in("b")), op("Relu", "r", in("b"), in("c"))), models.Overrides{}, `operator "a" (Add): takes its own output`},
		{"twice", onnx(x, op("Relu", "r", in("x"), in("y")), op("Relu", "s", in("x"), in("y"))), models.Overrides{}, `operator "s" (Relu): "y" is made twice`},
		{"unknown", onnx(x, op("Frobnicate", "f", in("x"), in("y"))), models.Overrides{}, `operator "f" (Frobnicate): an operator that is not known`},
		{"function", append(onnx(x, op("Frobnicate", "f", in("x"), in("y"))), message(nil, 25, text(1, "Frobnicate"))...), models.Overrides{}, "is a function of the file"},
		{"matrices", onnx(x, weight("w", 5, 3), op("MatMul", "m", in("x", "w"), in("y"))), models.Overrides{}, `operator "m" (MatMul): matrices of [1 4] and [5 3] do not fit`},
		{"no input", onnx(weight("w", 5, 3), op("Relu", "r", in("w"), in("y"))), models.Overrides{}, "0 inputs that an operator takes"},
		{"no shape", onnx(message(nil, 11, text(1, "x")), op("Relu", "r", in("x"), in("y"))), models.Overrides{}, `input "x" has no shape`},
		{"data", onnx(x, op("NonZero", "n", in("x"), in("y"))), models.Overrides{}, "an operator that is not known"},
		{"reshape", onnx(x, typed(11, "s", kindInt64, 2), op("Reshape", "r", in("x", "s"), in("y"))), models.Overrides{}, `operator "r" (Reshape): the new shape is computed from data`},
		{"expand", onnx(x, ints("s", 1<<30, 1<<30, 1, 4), op("Expand", "e", in("x", "s"), in("y"))), models.Overrides{}, `operator "e" (Expand): output 1 would have`},
		{"constant", onnx(x, op("Relu", "r", in("x"), in("y")), op("Constant", "c", nil, in("z"))), models.Overrides{}, "a constant without a value"},
		{"image", tiny(), models.Overrides{Image: 32}, "x.onnx: image: the file has it fixed; leave it out"},
		{"classes", tiny(), models.Overrides{Classes: 2}, "x.onnx: classes: the file has it fixed"},
		{"batch", tiny(), models.Overrides{Batch: 1 << 31}, "x.onnx: train.batch: "},
	} {
		_, err := read(tt.data, tt.o)
		if err == nil || !strings.HasPrefix(err.Error(), "x.onnx: ") || !strings.Contains(err.Error(), tt.want) || strings.ContainsAny(err.Error(), "\n") {
			t.Errorf("%s: got  %v\nwant %s", tt.name, err, tt.want)
		}
	}
}

// A file that is cut at any byte gives an error of one line, from a file and from
// a pipe.
func TestTruncated(t *testing.T) {
	data := tiny(typed(12, "y", kindFloat, -1, 3))
	for n := range len(data) - 1 {
		for _, r := range []*bytes.Reader{bytes.NewReader(data[:n])} {
			if _, err := Import("x.onnx", r, models.Overrides{}); err == nil {
				t.Errorf("%d of %d bytes are taken for a model", n, len(data))
			}
			_, _ = r.Seek(0, 0)
			if _, err := Import("x.onnx", pipe{r}, models.Overrides{}); err == nil {
				t.Errorf("%d of %d bytes from a pipe are taken for a model", n, len(data))
			}
		}
	}
}

// pipe is a reader that cannot seek.
type pipe struct{ r *bytes.Reader }

func (p pipe) Read(b []byte) (int, error) { return p.r.Read(b) }

// A small file that claims large lengths takes little memory.
func TestSmallFilesTakeLittleMemory(t *testing.T) {
	claim := func(field byte) []byte {
		b := append(number(1, 8), field<<3|2)
		return append(b, 0xff, 0xff, 0xff, 0xff, 0x07) // 2 GiB
	}
	shape := int64(1 << 24)
	for name, data := range map[string][]byte{
		"graph": claim(7),
		"opset": claim(8),
		"name":  append(number(1, 8), 0x3a, 0xff, 0xff, 0xff, 0x7f, 0x12, 0xff, 0xff, 0xff, 0x7e),
		"fill":  onnx(typed(11, "x", kindFloat, 1), ints("s", shape), op("ConstantOfShape", "", in("s"), in("c")), op("Add", "", in("x", "c"), in("y"))),
		"range": onnx(typed(11, "x", kindFloat, 1), ints("a", 0), ints("b", shape), ints("d", 1), op("Squeeze", "", in("a"), in("a0")),
			op("Squeeze", "", in("b"), in("b0")), op("Squeeze", "", in("d"), in("d0")), op("Range", "", in("a0", "b0", "d0"), in("c")),
			op("Add", "", in("x", "c"), in("y"))),
	} {
		for _, seek := range []bool{true, false} {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			r := bytes.NewReader(data)
			if seek {
				_, _ = Import("x.onnx", r, models.Overrides{})
			} else {
				_, _ = Import("x.onnx", pipe{r}, models.Overrides{})
			}
			runtime.ReadMemStats(&after)
			if n := after.TotalAlloc - before.TotalAlloc; n > 512<<10 {
				t.Errorf("%s: %d bytes of memory for a file of %d bytes", name, n, len(data))
			}
		}
	}
}

// The data of a weight is skipped, however large it is.
func TestWeightsAreSkipped(t *testing.T) {
	raw := make([]byte, 4*1000*1000)
	data := onnx(typed(11, "x", kindFloat, 1, 1000),
		message(nil, 5, dimsOf(1, 1000, 1000), number(2, kindFloat), text(8, "w.weight"), message(nil, 9, raw)),
		op("MatMul", "m", in("x", "w.weight"), in("y")))
	for _, seek := range []bool{true, false} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		var c *models.Config
		var err error
		if r := bytes.NewReader(data); seek {
			c, err = Import("x.onnx", r, models.Overrides{})
		} else {
			c, err = Import("x.onnx", pipe{r}, models.Overrides{})
		}
		runtime.ReadMemStats(&after)
		if err != nil || c.Params() != 1_000_000 {
			t.Fatal(c, err)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 512<<10 {
			t.Errorf("%d bytes of memory", n)
		}
	}
}
