package safetensors

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"carma/configs/models"
)

// Limits of a header. Headers of large models have a few MiB.
const (
	maxHeader  = 32 << 20
	maxTensors = 1_000_000
	maxDims    = 16
	maxFiles   = 10_000
)

// tensor is one entry of a header.
type tensor struct {
	Type    string  `json:"dtype"`
	Shape   []int64 `json:"shape"`
	Offsets []int64 `json:"data_offsets"`

	numbers int64
}

// bits contains the number of bits of each type. The types below one byte are in the
// format since version 0.6.
var bits = map[string]int64{
	"BOOL": 8, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8, "F8_E5M2FNUZ": 8, "F8_E4M3FNUZ": 8,
	"I16": 16, "U16": 16, "F16": 16, "BF16": 16, "I32": 32, "U32": 32, "F32": 32,
	"I64": 64, "U64": 64, "F64": 64, "C64": 64, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6,
}

func wrong(file, format string, args ...any) error {
	return &models.Error{File: file, What: fmt.Sprintf(format, args...)}
}

// readHeader adds the tensors of a file to all.
func readHeader(path string, all map[string]tensor) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return header(path, f, info.Size(), all)
}

// header reads the header of a file of size bytes.
func header(name string, r io.Reader, size int64, all map[string]tensor) error {
	var length [8]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return wrong(name, "shorter than 8 bytes; a safetensors file begins with the length of its header")
	}
	n := binary.LittleEndian.Uint64(length[:])
	if n > uint64(max(size-8, 0)) {
		return wrong(name, "its header would have %d bytes, and the file has %d; it is cut off or no safetensors file", n, size)
	}
	if n > maxHeader {
		return wrong(name, "its header has %d bytes; at most %d MiB are read", n, maxHeader>>20)
	}
	d := json.NewDecoder(bufio.NewReaderSize(io.LimitReader(r, int64(n)), 64<<10))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return wrong(name, "its header is no JSON object; it is no safetensors file")
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return wrong(name, "its header is not JSON: %v", err)
		}
		name1, _ := key.(string) // keys of objects are strings
		if name1 == "__metadata__" {
			var any json.RawMessage
			if err := d.Decode(&any); err != nil {
				return wrong(name, "its header is not JSON: %v", err)
			}
			continue
		}
		var t tensor
		if err := d.Decode(&t); err != nil {
			return wrong(name, "tensor %s: %v", models.Short(name1), err)
		}
		if what := t.check(size - 8 - int64(n)); what != "" {
			return wrong(name, "tensor %s: %s", models.Short(name1), what)
		}
		if _, twice := all[name1]; twice {
			return wrong(name, "tensor %s is there twice", models.Short(name1))
		}
		if len(all) == maxTensors {
			return wrong(name, "more than %d tensors", maxTensors)
		}
		all[name1] = t
	}
	if _, err := d.Token(); err != nil {
		return wrong(name, "its header is not JSON: %v", err)
	}
	return nil
}

// check returns the fault of a tensor, or "". room is the size of the file's data in
// bytes. check also counts the tensor's numbers.
func (t *tensor) check(room int64) string {
	each, ok := bits[t.Type]
	if !ok {
		return fmt.Sprintf("unknown dtype %s; for example BF16", models.Short(t.Type))
	}
	if len(t.Shape) > maxDims {
		return fmt.Sprintf("%d dimensions; at most %d", len(t.Shape), maxDims)
	}
	for _, d := range t.Shape {
		if d < 0 {
			return fmt.Sprintf("a dimension of %d", d)
		}
	}
	t.numbers = models.Product(t.Shape)
	if t.numbers > models.MaxElements {
		return fmt.Sprintf("shape %v has more than 2^50 numbers", t.Shape)
	}
	if len(t.Offsets) != 2 || t.Offsets[0] < 0 || t.Offsets[1] < t.Offsets[0] || t.Offsets[1] > room {
		return fmt.Sprintf("data_offsets %v are not within the %d bytes of the file's numbers; is it cut off?", t.Offsets, room)
	}
	if want := (t.numbers*each + 7) / 8; t.Offsets[1]-t.Offsets[0] != want {
		return fmt.Sprintf("data_offsets %v are %d bytes, its shape takes %d", t.Offsets, t.Offsets[1]-t.Offsets[0], want)
	}
	return ""
}

// bytes returns the size of the tensor's data in the file.
func (t *tensor) bytes() int64 { return t.Offsets[1] - t.Offsets[0] }
