package safetensors

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// entry is a tensor for [file].
type entry struct {
	name, kind string
	shape      []int64
}

// file returns a safetensors file with zeros.
func file(entries ...entry) []byte {
	at := int64(0)
	head := map[string]any{"__metadata__": map[string]string{"format": "pt"}}
	for _, e := range entries {
		t := tensor{Type: e.kind, Shape: e.shape}
		n := int64(1)
		for _, d := range e.shape {
			n *= d
		}
		t.Offsets = []int64{at, at + (n*bits[e.kind]+7)/8}
		at = t.Offsets[1]
		head[e.name] = t
	}
	text, _ := json.Marshal(head)
	return append(framed(string(text)), make([]byte, at)...)
}

// framed returns a header after its length.
func framed(header string) []byte {
	return append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...)
}

func write(t *testing.T, folder, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(folder, name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestForms checks that for each form of quantization the elements of the original matrix are
// counted. The libraries write these names and shapes for 64 x 256 numbers.
func TestForms(t *testing.T) {
	for _, c := range []struct {
		want    string
		entries []entry
	}{
		{"16384 BF16", []entry{{"a.weight", "BF16", []int64{256, 64}}}},
		{"16384 BF16, 256 F32", []entry{{"a.weight", "BF16", []int64{256, 64}}, {"n.weight", "F32", []int64{256}}}},
		{"16384 4 bits (bitsandbytes)", []entry{
			{"a.weight", "U8", []int64{8192, 1}}, {"a.weight.absmax", "U8", []int64{256}}, {"a.weight.quant_map", "F32", []int64{16}},
			{"a.weight.nested_absmax", "F32", []int64{1}}, {"a.weight.nested_quant_map", "F32", []int64{256}}, {"a.weight.quant_state.bitsandbytes__nf4", "U8", []int64{90}},
		}},
		{"16384 8 bits (bitsandbytes)", []entry{{"a.weight", "I8", []int64{256, 64}}, {"a.SCB", "F32", []int64{256}}, {"a.weight_format", "U8", []int64{}}}},
		{"16384 4 bits (GPTQ), 256 F16", []entry{
			{"a.qweight", "I32", []int64{8, 256}}, {"a.qzeros", "I32", []int64{2, 32}}, {"a.scales", "F16", []int64{2, 256}}, {"a.g_idx", "I32", []int64{64}}, {"a.bias", "F16", []int64{256}},
		}},
		{"16384 8 bits (GPTQ)", []entry{{"a.qweight", "I32", []int64{16, 256}}, {"a.qzeros", "I32", []int64{2, 64}}, {"a.scales", "F16", []int64{2, 256}}}},
		{"16384 4 bits (AWQ)", []entry{{"a.qweight", "I32", []int64{64, 32}}, {"a.qzeros", "I32", []int64{2, 32}}, {"a.scales", "F16", []int64{2, 256}}}},
		{"16384 F8_E4M3", []entry{{"a.weight", "F8_E4M3", []int64{256, 64}}, {"a.weight_scale_inv", "F32", []int64{2, 1}}}},
		{"16384 4 bits (MXFP4)", []entry{{"e.gate_up_proj_blocks", "U8", []int64{256, 2, 16}}, {"e.gate_up_proj_scales", "U8", []int64{256, 2}}}},
		{"256 F32", []entry{
			{"bn.weight", "F32", []int64{256}}, {"bn.running_mean", "F32", []int64{256}}, {"bn.running_var", "F32", []int64{256}}, {"bn.num_batches_tracked", "I64", []int64{}},
			{"rotary_emb.inv_freq", "F32", []int64{32}}, {"embeddings.position_ids", "I64", []int64{1, 512}}, {"attn.bias", "BOOL", []int64{1, 1, 8, 8}},
		}},
	} {
		w, err := Read(write(t, t.TempDir(), "model.safetensors", file(c.entries...)))
		if err != nil {
			t.Errorf("%s: %v", c.want, err)
		} else if w.String() != c.want {
			t.Errorf("%s, want %s", w, c.want)
		}
	}
}

func TestIndex(t *testing.T) {
	folder := t.TempDir()
	write(t, folder, "model-00001-of-00002.safetensors", file(entry{"a.weight", "BF16", []int64{8, 8}}))
	write(t, folder, "model-00002-of-00002.safetensors", file(entry{"b.weight", "F32", []int64{4}}))
	index := write(t, folder, "model.safetensors.index.json", []byte(
		`{"metadata": {"total_size": 144}, "weight_map": {"a.weight": "model-00001-of-00002.safetensors", "b.weight": "model-00002-of-00002.safetensors"}}`))
	if got := In(folder); got != index {
		t.Errorf("%s in the folder, want %s", got, index)
	}
	w, err := Read(index)
	if err != nil || w.Parameters != 68 || w.String() != "64 BF16, 4 F32" {
		t.Errorf("%+v %v", w, err)
	}
}

// TestHostile checks that an invalid file gives an error of one line, and that no large memory
// is allocated before.
func TestHostile(t *testing.T) {
	one := func(fields string) []byte { return append(framed(`{"x": {`+fields+`}}`), 0, 0, 0, 0) }
	for _, c := range []struct {
		data []byte
		want string
	}{
		{nil, "shorter than 8 bytes"},
		{[]byte("abc"), "shorter than 8 bytes"},
		{[]byte{255, 255, 255, 255, 255, 255, 255, 255}, "its header would have 18446744073709551615 bytes, and the file has 8"},
		{[]byte("PK\x03\x04 a zip file of PyTorch"), "its header would have"},
		{framed("[]"), "its header is no JSON object"},
		{framed(`{"x": `), `tensor "x": EOF`},
		{framed(`{"x": 3}`), `tensor "x": json: cannot unmarshal number`},
		{one(`"dtype": "BF17", "shape": [2], "data_offsets": [0, 4]`), `tensor "x": unknown dtype "BF17"; for example BF16`},
		{one(`"dtype": "BF16", "shape": [-2], "data_offsets": [0, 4]`), "a dimension of -2"},
		{one(`"dtype": "BF16", "shape": [4611686018427387904, 4], "data_offsets": [0, 4]`), "more than 2^50 numbers"},
		{one(`"dtype": "BF16", "shape": [2], "data_offsets": [0, 400]`), "are not within the 4 bytes"},
		{one(`"dtype": "BF16", "shape": [2], "data_offsets": [4, 0]`), "are not within"},
		{one(`"dtype": "BF16", "shape": [2]`), "are not within"},
		{one(`"dtype": "BF16", "shape": [1], "data_offsets": [0, 4]`), "are 4 bytes, its shape takes 2"},
		{append(framed(`{"x": {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]}, "x": {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]}}`), 0), "is there twice"},
	} {
		_, err := Read(write(t, t.TempDir(), "x.safetensors", c.data))
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.60q: %v, want %s", c.data, err, c.want)
		}
	}
	for _, c := range []struct{ text, want string }{
		{"{", "not JSON"},
		{"{}", "weight_map: missing or empty"},
		{`{"weight_map": {"a": "../../etc/x.safetensors"}}`, "is not the name of a safetensors file in the same folder"},
		{`{"weight_map": {"a": "/dev/zero"}}`, "is not the name of"},
		{`{"weight_map": {"a": 3}}`, "not JSON"},
		{`{"weight_map": {"a": "model-1.safetensors"}}`, "no such file"},
	} {
		_, err := Read(write(t, t.TempDir(), "model.safetensors.index.json", []byte(c.text)))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.text, err, c.want)
		}
	}
}

// TestLongHeader checks that a very long header in a sparse file is refused because of its
// length.
func TestLongHeader(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.safetensors")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(binary.LittleEndian.AppendUint64(nil, 1<<33)); err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(1 << 34); err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	if _, err := Read(path); err == nil || !strings.Contains(err.Error(), "at most 32 MiB are read") {
		t.Error(err)
	}
}

// FuzzHeader: any file gives an error of one line, or figures that are not negative.
func FuzzHeader(f *testing.F) {
	f.Add(file(entry{"a.weight", "BF16", []int64{8, 8}}))
	f.Add(file(entry{"a.qweight", "I32", []int64{8, 256}}, entry{"a.qzeros", "I32", []int64{2, 32}}, entry{"a.scales", "F16", []int64{2, 256}}))
	f.Add(file(entry{"a.weight", "U8", []int64{8, 1}}, entry{"a.weight.quant_state.bitsandbytes__nf4", "U8", []int64{9}}))
	f.Add(framed(`{"x": {"dtype": "F32", "shape": [], "data_offsets": [0, 4]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		all := map[string]tensor{}
		err := header("x", strings.NewReader(string(data)), int64(len(data)), all)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\r") {
				t.Errorf("not one line: %q", err)
			}
			return
		}
		w := count(all)
		if w.Parameters < 0 || strings.Contains(fmt.Sprint(w), "\n") {
			t.Errorf("%+v", w)
		}
	})
}
