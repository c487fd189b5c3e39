package timm

import (
	"bytes"
	"reflect"
	"slices"
	"testing"

	"carma/configs/models"
)

// synthetic are two tables that use everything in the format.
func synthetic() []Table {
	return []Table{
		{
			Name: "b", Input: []int64{3, 32, 32}, Buffers: 128,
			Layers: []models.Layer{
				{
					Type: models.Convolution, Inputs: []int{-1}, Out: []int64{8, 16, 16}, Params: []int64{216, 8},
					Kernel: []int64{3, 3}, Stride: 2, Groups: 1, Keeps: &models.Keeps{Inputs: []int{0}},
				},
				{
					Type: models.ReLU, Inputs: []int{0}, Out: []int64{8, 16, 16}, InPlace: true,
					Keeps: &models.Keeps{Output: true},
				},
				{Type: models.Add, Inputs: []int{1, -1}, Out: []int64{8}, Whole: true},
				{
					Type: models.MatMul, Inputs: []int{1, 2}, Out: []int64{1 << 40}, Frozen: true, Params: []int64{7},
					Keeps: &models.Keeps{Inputs: []int{0, 1}, Bytes: 99, Whole: 1 << 30},
				},
			},
		},
		{Name: "a", Input: []int64{10}, Layers: []models.Layer{
			{Type: models.Linear, Inputs: []int{-1}, Out: []int64{5}, Keeps: &models.Keeps{}},
		}},
	}
}

func file(t testing.TB, tables []Table) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, "by hand", tables); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestRoundTrip(t *testing.T) {
	a, err := open(file(t, synthetic()))
	if err != nil {
		t.Fatal(err)
	}
	if a.provenance != "by hand" || a.entries[0].name != "a" || a.entries[1].info != (Info{231, 128}) {
		t.Errorf("header: %q, %+v", a.provenance, a.entries)
	}
	for _, want := range synthetic() {
		got, err := a.table(want.Name)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(*got, want) {
			t.Errorf("table %s:\n got %+v\nwant %+v", want.Name, *got, want)
		}
	}
}

func TestWriteRefuses(t *testing.T) {
	for name, l := range map[string]models.Layer{
		"no shape":       {Type: models.ReLU},
		"no such type":   {Type: "what", Out: []int64{1}},
		"later input":    {Type: models.ReLU, Out: []int64{1}, Inputs: []int{0}},
		"no such tensor": {Type: models.ReLU, Out: []int64{1}, Inputs: []int{-2}},
	} {
		if err := Write(&bytes.Buffer{}, "", []Table{{Name: "x", Layers: []models.Layer{l}}}); err == nil {
			t.Errorf("%s: written", name)
		}
	}
}

// A file that is cut at any byte is an error.
func TestTruncated(t *testing.T) {
	whole := file(t, synthetic())
	for n := range whole {
		a, err := open(whole[:n])
		if err != nil {
			continue
		}
		if _, err := a.table("b"); err == nil {
			t.Errorf("the first %d of %d bytes make a table", n, len(whole))
		}
	}
}

// With any bytes the reader neither panics nor allocates much. An accepted file
// can be written again.
func FuzzOpen(f *testing.F) {
	f.Add(file(f, synthetic()))
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := open(b)
		if err != nil {
			return
		}
		for i, e := range a.entries {
			if i == 20 {
				break
			}
			_, _ = a.table(e.name)
		}
	})
}

// The damage is in the uncompressed data.
func FuzzTable(f *testing.F) {
	types := models.Types()
	for _, t := range synthetic() {
		b, err := encode(t, types)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		table, err := decode(b, types)
		if err != nil {
			return
		}
		again, err := encode(*table, types)
		if err != nil {
			t.Fatalf("read but not written: %v", err)
		}
		back, err := decode(again, types)
		if err != nil || !reflect.DeepEqual(back, table) {
			t.Fatalf("not the same again: %v", err)
		}
		for i, l := range table.Layers {
			if slices.ContainsFunc(l.Inputs, func(in int) bool { return in >= i }) {
				t.Fatalf("layer %d: inputs %v", i, l.Inputs)
			}
		}
	})
}
