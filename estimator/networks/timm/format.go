package timm

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sort"
)

// A file of tables is
//
//	magic, 8 bytes
//	header: size compressed, size, then deflated:
//	  types: count, names; provenance
//	  chunks: count, then of each its size compressed and its size
//	  models, sorted by name: count, then of each its name, chunk, offset and
//	  length in the chunk, params, buffers
//	chunks, deflated
//
// Every number is an unsigned varint; a name is its length and bytes. Models with
// similar names have similar tables, so they share a chunk. Reading a model reads
// one chunk. A model is stored in columns, see [Table] and table.go.
const magic = "carmatt1"

// maxChunk bounds the memory that a damaged file can make the reader allocate, in
// bytes.
const maxChunk = 8 << 20

var errDamaged = errors.New("damaged table file")

// ErrNotFound: there is no table of this model.
var ErrNotFound = errors.New("no such timm model")

type archive struct {
	types      []string
	provenance string
	chunks     []chunk
	entries    []entry
}

type chunk struct {
	packed []byte
	size   uint64
}

type entry struct {
	name                  string
	chunk, offset, length uint64
	info                  Info
}

// open reads the header.
func open(b []byte) (*archive, error) {
	if !bytes.HasPrefix(b, []byte(magic)) {
		return nil, fmt.Errorf("timm tables: %w: no magic", errDamaged)
	}
	f := reader{b: b[len(magic):]}
	packed, size := f.uint(), f.uint()
	raw, err := inflate(f.take(packed), size)
	if f.bad || err != nil {
		return nil, fmt.Errorf("timm tables: header: %w", errDamaged)
	}
	a := &archive{}
	h := reader{b: raw}
	for range h.count() {
		a.types = append(a.types, h.string())
	}
	a.provenance = h.string()
	for range h.count() {
		n := h.uint()
		a.chunks = append(a.chunks, chunk{packed: f.take(n), size: h.uint()})
	}
	for range h.count() {
		e := entry{name: h.string(), chunk: h.uint(), offset: h.uint(), length: h.uint()}
		e.info = Info{Params: h.int(), Buffers: h.int()}
		if e.chunk >= uint64(len(a.chunks)) {
			h.bad = true
			break
		}
		a.entries = append(a.entries, e)
	}
	if h.bad || f.bad {
		return nil, fmt.Errorf("timm tables: header: %w", errDamaged)
	}
	return a, nil
}

func (a *archive) find(name string) (entry, error) {
	i := sort.Search(len(a.entries), func(i int) bool { return a.entries[i].name >= name })
	if i == len(a.entries) || a.entries[i].name != name {
		return entry{}, fmt.Errorf("%w: %q", ErrNotFound, name)
	}
	return a.entries[i], nil
}

// table reads one model.
func (a *archive) table(name string) (*Table, error) {
	e, err := a.find(name)
	if err != nil {
		return nil, err
	}
	c := a.chunks[e.chunk]
	raw, err := inflate(c.packed, c.size)
	if err != nil {
		return nil, fmt.Errorf("timm model %q: %w", name, err)
	}
	n := uint64(len(raw))
	if e.offset > n || e.length > n-e.offset {
		return nil, fmt.Errorf("timm model %q: %w", name, errDamaged)
	}
	t, err := decode(raw[e.offset:e.offset+e.length], a.types)
	if err != nil {
		return nil, fmt.Errorf("timm model %q: %w", name, err)
	}
	t.Name, t.Buffers = name, e.info.Buffers
	return t, nil
}

func inflate(packed []byte, size uint64) ([]byte, error) {
	if size > maxChunk {
		return nil, errDamaged
	}
	// The buffer grows while reading, so a wrong size allocates only what exists.
	var b bytes.Buffer
	n, err := io.Copy(&b, io.LimitReader(flate.NewReader(bytes.NewReader(packed)), int64(size)+1))
	if err != nil || uint64(n) != size {
		return nil, errDamaged
	}
	return b.Bytes(), nil
}

// reader takes numbers from a buffer. After the first missing number it is bad
// and returns zeros.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) uint() uint64 {
	v, n := binary.Uvarint(r.b)
	if r.bad || n <= 0 {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return v
}

// int is a number small enough that a product with a batch size does not
// overflow.
func (r *reader) int() int64 {
	v := r.uint()
	if v > 1<<48 {
		r.bad, v = true, 0
	}
	return int64(v)
}

// count is a number of items that have at least one byte each.
func (r *reader) count() int {
	v := r.uint()
	if v > uint64(len(r.b)) {
		r.bad = true
		return 0
	}
	return int(v)
}

func (r *reader) take(n uint64) []byte {
	if r.bad || n > uint64(len(r.b)) {
		r.bad = true
		return nil
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) string() string { return string(r.take(uint64(r.count()))) }

// ints are a count and that many numbers, each at least least; nil: none.
func (r *reader) ints(least int64) []int64 {
	n := r.count()
	if n == 0 {
		return nil
	}
	s := make([]int64, n)
	for i := range s {
		if s[i] = r.int(); s[i] < least {
			r.bad = true
		}
	}
	return s
}
