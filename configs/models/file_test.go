package models

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
)

// sample returns a small valid configuration.
func sample() *Config {
	return &Config{
		Schema: Schema, Name: "tiny", Family: Conv, Origin: "catalogue",
		Train:  Train{Batch: 4, Precision: AMP, Optimizer: AdamW, GPUs: 2, Parallel: DDP, Implementation: "fused"},
		Inputs: []Input{{Shape: []int64{3, 8, 8}}, {Shape: []int64{16}, Bytes: 8}},
		Layers: []Layer{
			{Name: "conv", Type: Convolution, Out: []int64{4, 8, 8}, Params: []int64{108, 4}, Kernel: []int64{3, 3}, Stride: 1, Groups: 1},
			{Name: "relu", Type: ReLU, Out: []int64{4, 8, 8}, InPlace: true},
			{Name: "ids", Type: Embedding, Inputs: []int{-2}, Out: []int64{16, 4}, Params: []int64{400}, Frozen: true},
			{Name: "mix <&>", Type: OtherLayer, Inputs: []int{1, 2}, Out: []int64{10}, Keeps: &Keeps{Inputs: []int{0, 1}, Output: true, Bytes: 8}, Block: 1},
			{Name: "head", Type: Linear, Holds: []int{0, 2}, Out: []int64{400}, Params: []int64{4000}, Tied: true},
			{Name: "loss", Type: CrossEntropy, Out: nil, Whole: true},
		},
		Warnings: []string{"none"},
	}
}

func TestWriteRead(t *testing.T) {
	c := sample()
	var b bytes.Buffer
	if err := c.Write(&b); err != nil {
		t.Fatal(err)
	}
	got, err := Read("x.json", bytes.NewReader(b.Bytes()))
	if err != nil {
		t.Fatalf("%v\n%s", err, b.String())
	}
	c.Layers[5].Out = []int64{}
	if !reflect.DeepEqual(got, c) {
		t.Errorf("got  %+v\nwant %+v", got, c)
	}
	var again bytes.Buffer
	if err := got.Write(&again); err != nil || again.String() != b.String() {
		t.Errorf("%v: writing what was read gives another text:\n%s\n%s", err, b.String(), again.String())
	}
	if strings.Count(b.String(), "\n") > 50 || !strings.Contains(b.String(), `{"name":"mix <&>","type":"other",`) {
		t.Errorf("not a line for each layer:\n%s", b.String())
	}
}

func TestCounts(t *testing.T) {
	c := sample()
	if c.Params() != 512 || c.TrainableParams() != 112 || c.Activations() != 256+256+64+10+400 {
		t.Errorf("params %d, trainable %d, activations %d", c.Params(), c.TrainableParams(), c.Activations())
	}
	same := sample()
	same.Name, same.Origin, same.Layers[0].Name, same.Warnings = "other", "", "", nil
	if same.Hash() != c.Hash() || c.Layers[0].Name != "conv" {
		t.Error("names are hashed")
	}
	same.Train.Batch = 5
	if same.Hash() == c.Hash() || same.NetworkHash() != c.NetworkHash() {
		t.Error("the batch is part of Hash and not of NetworkHash")
	}
	same.Layers[0].Out[0] = 5
	if same.NetworkHash() == c.NetworkHash() {
		t.Error("shapes are not hashed")
	}
	huge := Layer{Out: []int64{1 << 40, 1 << 40}}
	if huge.Elements() != 1<<63-1 {
		t.Errorf("an overflow gives %d", huge.Elements())
	}
}

const small = `{
  "schema": 1,
  "name": "tiny",
  "family": "mlp",
  "train": {"batch": 8},
  "inputs": [{"shape": [4]}],
  "layers": [
    {"type": "linear", "out": [2], "params": [8, 2]},
    {"type": "relu", "out": [2]},
    {"type": "linear", "out": [1], "params": [2, 1]}
  ]
}
`

func TestReadFaults(t *testing.T) {
	if _, err := Read("m.json", strings.NewReader(small)); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ from, to, want string }{
		{`"relu"`, `"rleu"`, `m.json:9: layers[1].type: unknown type "rleu"; did you mean relu?`},
		{`"relu"`, `"Relu"`, ``},
		{`"batch": 8`, `"batch": 0`, `m.json:5: train.batch: 0 is no batch; it is 1 to 1073741824 samples`},
		{`"batch": 8`, `"bacth": 8`, `m.json:5: train.bacth: unknown field; did you mean batch?`},
		{`"batch": 8`, `"precision": "fp32"`, `m.json:5: train.batch: missing; every train has one`},
		{`"batch": 8`, `"batch": "8"`, `m.json:5: train.batch: a text; it is a whole number`},
		{`"batch": 8`, `"batch": 8.5`, `m.json:5: train.batch: "8.5" is not a whole number of 64 bits`},
		{`"batch": 8`, `"batch": 8, "batch": 9`, `m.json:5: train.batch: given twice; leave one out`},
		{`"batch": 8`, `"batch": 8, "precision": "FP16"`, ``},
		{`"batch": 8`, `"batch": 8, "precision": "bfloat"`, `m.json:5: train.precision: unknown precision "bfloat"; `},
		{`"batch": 8`, `"batch": 8, "gpus": -1`, `m.json:5: train.gpus: -1 is no number of GPUs; it is 0 to 65536`},
		{`"schema": 1`, `"schema": 2`, `m.json:2: schema: version 2 is not known; this carma reads version 1`},
		{`"schema"`, `"Schema"`, `m.json:2: Schema: unknown field; did you mean schema?`},
		{`"family": "mlp"`, `"family": null`, `m.json:4: family: null; it is a text`},
		{`"out": [1]`, `"out": [-1]`, `m.json:10: layers[2].out: a dimension of -1; each is at least 1`},
		{`"out": [1]`, `"out": [1, 1, 1, 1, 1, 1, 1, 1, 1]`, `m.json:10: layers[2].out: 9 dimensions; at most 8`},
		{`"out": [1]`, `"out": [9000000000, 9000000000]`, `m.json:10: layers[2].out: [9000000000 9000000000] has more than 2^50 elements`},
		{`"out": [1]`, `"out": [900000000000000]`, `m.json:7: layers: the outputs of all layers are more than 2^50 elements at batch 8; `},
		{`"out": [1]`, `"out": 1`, `m.json:10: layers[2].out: a number; it is a list [...]`},
		{`"out": [1]`, `"out": [1], "inputs": [2]`, `m.json:10: layers[2].inputs: 2 is not before layer 2; inputs are earlier layers`},
		{`"out": [1]`, `"out": [1], "holds": [2]`, `m.json:10: layers[2].holds: 2 is not a layer before layer 2; what is held are earlier layers`},
		{`"out": [1]`, `"out": [1], "inputs": [-2]`, `m.json:10: layers[2].inputs: -2 is no input of the model; it has -1 to -1`},
		{`"out": [1], `, ``, `m.json:10: layers[2].out: missing; every layer has one`},
		{`[2, 1]`, `[2, 0]`, `m.json:10: layers[2].params: a tensor has from 1 to 2^50 elements`},
		{`[2, 1]}`, `[2, 1]},`, `m.json:11: layers[3]: not JSON: invalid character ']' `},
		{"]\n}\n", "]\n", `m.json:11: the text ends too early; the file is cut off or empty`},
		{"]\n}\n", "]\n}\n{}", `m.json:13: text after the end of the configuration; a file holds one`},
		{small, ``, `m.json:1: the text ends too early; the file is cut off or empty`},
		{small, `[]`, `m.json:1: a list; it is an object {...}`},
	} {
		text := strings.Replace(small, tt.from, tt.to, 1)
		_, err := Read("m.json", strings.NewReader(text))
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%s: %v", tt.to, err)
		case tt.want != "" && (err == nil || !strings.HasPrefix(err.Error(), tt.want)):
			t.Errorf("%s:\n got %v\nwant %s", tt.to, err, tt.want)
		}
		var e *Error
		if err != nil && (!errors.As(err, &e) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%T of more than a line: %v", err, err)
		}
	}
}

func TestReadTooLarge(t *testing.T) {
	_, err := Read("m.json", strings.NewReader(strings.Repeat(" ", MaxFile+1)))
	if err == nil || !strings.Contains(err.Error(), "larger than 64 MiB") {
		t.Error(err)
	}
}

func TestWith(t *testing.T) {
	c, yes := sample(), true
	got, err := c.With(Overrides{Batch: 64, Precision: "BF16", Optimizer: "SGD", GPUs: 4, Parallel: ZeRO3, Implementation: "Fused", Checkpointing: &yes})
	if err != nil {
		t.Fatal(err)
	}
	want := Train{Batch: 64, Precision: BF16, Optimizer: SGD, GPUs: 4, Parallel: ZeRO3, Implementation: "fused", Checkpointing: true}
	if got.Train != want || c.Train.Batch != 4 || len(got.Warnings) != 1 {
		t.Errorf("got %+v, warnings %q; was %+v", got.Train, got.Warnings, c.Train)
	}
	if same, err := c.With(Overrides{}); err != nil || same.Train != c.Train {
		t.Errorf("no overrides: %+v, %v", same, err)
	}
	for want, o := range map[string]Overrides{
		`train.optimizer: unknown optimizer "adma"; did you mean adam?`: {Optimizer: "adma"},
		`train.batch: -1 is no batch`:                                   {Batch: -1},
		`image: the layers of tiny are fixed`:                           {Image: 224},
	} {
		if _, err := c.With(o); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(small))
	var b bytes.Buffer
	if err := sample().Write(&b); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := Read("x", bytes.NewReader(text))
		if err != nil {
			if s := err.Error(); strings.ContainsAny(s, "\n\r") || !strings.HasPrefix(s, "x:") {
				t.Fatalf("not a line with the file: %q", s)
			}
			return
		}
		var first, second bytes.Buffer
		if err := c.Write(&first); err != nil {
			t.Fatal(err)
		}
		again, err := Read("x", bytes.NewReader(first.Bytes()))
		if err != nil {
			t.Fatalf("%v\n%s", err, first.String())
		}
		if err := again.Write(&second); err != nil || second.String() != first.String() {
			t.Fatalf("%v: %s\n%s", err, first.String(), second.String())
		}
	})
}
