package timm

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strings"

	"carma/configs/models"
)

// chunkSize is about how many bytes of tables are read for one model.
const chunkSize = 64 << 10

// Write writes a file of tables.
func Write(w io.Writer, provenance string, all []Table) error {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b Table) int { return strings.Compare(a.Name, b.Name) })
	types := models.Types()
	var entries, chunks, body []byte
	var raw []byte
	n := 0
	flush := func() {
		packed := deflate(raw)
		chunks = number(number(chunks, int64(len(packed))), int64(len(raw)))
		body = append(body, packed...)
		raw, n = nil, n+1
	}
	for _, t := range all {
		b, err := encode(t, types)
		if err != nil {
			return fmt.Errorf("timm model %q: %w", t.Name, err)
		}
		var params int64
		for _, l := range t.Layers {
			for _, p := range l.Params {
				params += p
			}
		}
		entries = numbers(text(entries, t.Name), int64(n), int64(len(raw)), int64(len(b)), params, t.Buffers)
		if raw = append(raw, b...); len(raw) >= chunkSize {
			flush()
		}
	}
	if len(raw) > 0 {
		flush()
	}
	header := number(nil, int64(len(types)))
	for _, t := range types {
		header = text(header, t)
	}
	header = number(text(header, provenance), int64(n))
	header = append(header, chunks...)
	header = append(number(header, int64(len(all))), entries...)
	packed := deflate(header)
	file := numbers([]byte(magic), int64(len(packed)), int64(len(header)))
	_, err := w.Write(slices.Concat(file, packed, body))
	return err
}

// encode is the inverse of [decode].
func encode(t Table, types []string) ([]byte, error) {
	var ids, flags, outs, inputs, params, geometry, kept, bytes, whole []byte
	var table []byte
	shapes := map[string]int64{}
	for i, l := range t.Layers {
		id := slices.Index(types, l.Type)
		if id < 0 || len(l.Out) == 0 {
			return nil, fmt.Errorf("layer %d: type %q, out %v", i, l.Type, l.Out)
		}
		key := string(list(nil, l.Out))
		if _, ok := shapes[key]; !ok {
			shapes[key] = int64(len(shapes))
			table = append(table, key...)
		}
		ids, outs, params = number(ids, int64(id)), number(outs, shapes[key]), list(params, l.Params)
		inputs = number(inputs, int64(len(l.Inputs)))
		for _, in := range l.Inputs {
			if in < -1 || in >= i {
				return nil, fmt.Errorf("layer %d: input %d", i, in)
			}
			inputs = number(inputs, int64(i-in))
		}
		f := bits(l)
		flags = number(flags, f)
		if f&flagGeometry != 0 {
			geometry = numbers(list(geometry, l.Kernel), l.Stride, l.Groups)
		}
		if k := l.Keeps; k != nil {
			kept = number(kept, int64(len(k.Inputs)))
			for _, at := range k.Inputs {
				kept = number(kept, int64(at))
			}
			bytes, whole = number(bytes, k.Bytes), number(whole, k.Whole)
		}
	}
	head := number(list(nil, t.Input), int64(len(shapes)))
	head = number(append(head, table...), int64(len(t.Layers)))
	return slices.Concat(head, ids, flags, outs, inputs, params, geometry, kept, bytes, whole), nil
}

func bits(l models.Layer) int64 {
	var f int64
	for _, b := range []struct {
		set bool
		bit int64
	}{
		{l.InPlace, flagInPlace},
		{l.Whole, flagWhole},
		{l.Frozen, flagFrozen},
		{l.Keeps != nil, flagKeeps},
		{l.Keeps != nil && l.Keeps.Output, flagOutput},
		{len(l.Kernel) > 0 || l.Stride != 0 || l.Groups != 0, flagGeometry},
	} {
		if b.set {
			f |= b.bit
		}
	}
	return f
}

func number(b []byte, v int64) []byte { return binary.AppendUvarint(b, uint64(v)) }

func numbers(b []byte, v ...int64) []byte {
	for _, x := range v {
		b = number(b, x)
	}
	return b
}

func list(b []byte, v []int64) []byte { return numbers(number(b, int64(len(v))), v...) }

func text(b []byte, s string) []byte { return append(number(b, int64(len(s))), s...) }

func deflate(b []byte) []byte {
	var out bytes.Buffer
	w, err := flate.NewWriter(&out, flate.BestCompression)
	if err != nil {
		panic(err) // the level is valid
	}
	if _, err := w.Write(b); err != nil {
		panic(err) // a buffer accepts all writes
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return out.Bytes()
}
