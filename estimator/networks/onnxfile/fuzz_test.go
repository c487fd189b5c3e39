package onnxfile

import (
	"bytes"
	"strings"
	"testing"

	"carma/configs/models"
)

// An ONNX file gives an error of one line, or a configuration that is valid and
// can be written and read. The seeds are small, because Go takes a minute to
// minimize a large one.
func FuzzImportONNX(f *testing.F) {
	x := typed(11, "x", kindFloat, -1, 3, 8, 8)
	for _, data := range [][]byte{
		tiny(),
		onnx(x, weight("c.weight", 4, 3, 3, 3), op("Conv", "c", in("x", "c.weight"), in("a"), attrInts("pads", 1, 1, 1, 1)),
			op("Relu", "", in("a"), in("b")), op("MaxPool", "", in("b"), in("y"), attrInts("kernel_shape", 2, 2), attrInts("strides", 2, 2))),
		onnx(x, ints("s", 0, -1), op("Reshape", "", in("x", "s"), in("a")), op("Softmax", "", in("a"), in("b")), ints("p", 0, 1, 0, 1), op("Pad", "", in("b", "p"), in("y"))),
		onnx(x, op("Shape", "", in("x"), in("s")), ints("i", 2), op("Gather", "", in("s", "i"), in("d")), op("Concat", "", in("i", "d"), in("t"), attrInt("axis", 0)),
			op("ConstantOfShape", "", in("t"), in("z")), op("Split", "", in("x"), in("a", "b"), attrInt("axis", -1)), op("Transpose", "", in("a"), in("at"), attrInts("perm", 0, 1, 3, 2)),
			op("MatMul", "", in("at", "b"), in("m")), op("Softmax", "", in("m"), in("n")), op("MatMul", "", in("n", "b"), in("y"))),
		onnx(typed(11, "x", kindFloat, 5, -1, 3), weight("w", 1, 16, 3), weight("r", 1, 16, 4), op("LSTM", "", in("x", "w", "r"), in("", "h", "c")), op("Squeeze", "", in("h"), in("y"))),
		onnx(x, op("Einsum", "", in("x", "x"), in("a"), message(nil, 5, text(1, "equation"), text(4, "bchw,bcxw->bchx"))), op("ReduceMean", "", in("a"), in("m"), attrInts("axes", -1)),
			op("Sub", "", in("a", "m"), in("d")), op("Mul", "", in("d", "d"), in("p")), op("ReduceMean", "", in("p"), in("v"), attrInts("axes", -1)), op("Sqrt", "", in("v"), in("s")),
			op("Div", "", in("d", "s"), in("n")), op("Sigmoid", "", in("n"), in("g")), op("Mul", "", in("n", "g"), in("y"))),
		onnx(typed(11, "ids", kindInt64, -1, -2), weight("t.weight", 9, 4), op("Gather", "", in("t.weight", "ids"), in("e")), weight("t2.weight", 4, 9), op("MatMul", "", in("e", "t2.weight"), in("m")),
			weight("b", 9), op("Add", "", in("m", "b"), in("l")), op("Slice", "", in("l", "one", "two", "one"), in("y")), ints("one", 1), ints("two", 2)),
		onnx(x, weight("w", 3, 2, 2, 2), op("ConvTranspose", "", in("x", "w"), in("a")), op("Resize", "", in("a", "", "", "s"), in("b")), ints("s", 1, 2, 9, 9),
			weight("g", 2), op("InstanceNormalization", "", in("b", "g", "g"), in("y")), op("Frobnicate", "", in("y"), in("z")), typed(13, "z", kindFloat, -1, 5)),
	} {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Import("x.onnx", bytes.NewReader(data), models.Overrides{})
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\r") || !strings.HasPrefix(err.Error(), "x.onnx: ") {
				t.Fatalf("more than a line, or no file: %q", err)
			}
			return
		}
		var b bytes.Buffer
		if err := c.Write(&b); err != nil {
			t.Fatal(err)
		}
		if _, err := models.Read("x", &b); err != nil {
			t.Fatal(err)
		}
	})
}
