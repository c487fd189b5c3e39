package onnxfile

import (
	"encoding/binary"
	"math"
)

// Kinds of elements: TensorProto.DataType of onnx.proto3.
const (
	kindFloat    = 1
	kindUint8    = 2
	kindInt32    = 6
	kindInt64    = 7
	kindBool     = 9
	kindFloat16  = 10
	kindDouble   = 11
	kindBfloat16 = 16
)

// sizes are the bytes of an element; kinds not listed have 4.
var sizes = map[int64]int{
	kindUint8: 1, 3: 1, 4: 2, 5: 2, kindInt64: 8, kindBool: 1, kindFloat16: 2, kindDouble: 8, 13: 8, 14: 8, 15: 16, kindBfloat16: 2,
	17: 1, 18: 1, 19: 1, 20: 1,
}

func sizeOf(kind int64) int {
	if n, ok := sizes[kind]; ok {
		return n
	}
	return 4
}

// real reports whether a kind is floating-point.
func real(kind int64) bool {
	return kind == kindFloat || kind == kindDouble || kind == kindFloat16 || kind == kindBfloat16 || kind >= 17 && kind <= 20
}

// small is the most elements of a tensor whose content is kept. Shapes are made
// of such tensors.
const small = 1024

// tensor reads a TensorProto; of a large one only the shape.
func (s *stream) tensor(f field) (tensor, error) {
	t := tensor{kind: kindFloat}
	var raw []byte
	err := s.sub(f, func(f field) (bool, error) {
		switch {
		case f.number == 1:
			return s.numbers(f, &t.dims)
		case f.is(2, varint):
			return true, s.num(f, &t.kind)
		case f.number == 4 || f.number == 10:
			if f.kind == lengths || len(t.floats) < small {
				return s.some(f, func() (bool, error) { return s.reals(f, &t.floats) })
			}
		case f.number == 5 || f.number == 7 || f.number == 11:
			if f.kind == lengths || len(t.ints) < small {
				return s.some(f, func() (bool, error) { return s.numbers(f, &t.ints) })
			}
		case f.is(8, lengths):
			return true, s.str(f, &t.name)
		case f.is(9, lengths):
			end, err := s.length(f.end)
			if err != nil {
				return true, err
			}
			if end-s.at > 8*small {
				return true, s.skip(end - s.at)
			}
			raw, err = s.bytes(end)
			return true, err
		}
		return false, nil
	})
	if err != nil {
		return t, err
	}
	if what := shapeFault(t.dims); what != "" {
		return t, fault("tensor %s: %s", short(t.name), what)
	}
	t.content(raw)
	return t, nil
}

// some reads a packed list if it is small, else it skips the list.
func (s *stream) some(f field, read func() (bool, error)) (bool, error) {
	if f.kind != lengths {
		return read()
	}
	b, _ := s.r.Peek(10)
	n, _ := varintOf(b)
	if n > 8*small {
		return false, nil
	}
	return read()
}

func varintOf(b []byte) (uint64, int) { return binary.Uvarint(b) }

// content reads the numbers from raw bytes. It drops numbers whose count differs
// from the shape's.
func (t *tensor) content(raw []byte) {
	n := product(t.dims)
	if n > small {
		t.ints, t.floats = nil, nil
		return
	}
	if size := int64(sizeOf(t.kind)); raw != nil && int64(len(raw)) == n*size {
		for i := range int(n) {
			t.one(raw[i*int(size):])
		}
	}
	switch {
	case real(t.kind):
		t.ints = nil
	default:
		t.floats = nil
	}
	if int64(len(t.ints)) != n {
		t.ints = nil
	}
	if int64(len(t.floats)) != n {
		t.floats = nil
	}
}

func (t *tensor) one(b []byte) {
	switch t.kind {
	case kindFloat:
		t.floats = append(t.floats, float64(math.Float32frombits(binary.LittleEndian.Uint32(b))))
	case kindDouble:
		t.floats = append(t.floats, math.Float64frombits(binary.LittleEndian.Uint64(b)))
	case kindBfloat16:
		t.floats = append(t.floats, float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(b))<<16)))
	case kindFloat16:
		t.floats = append(t.floats, half(binary.LittleEndian.Uint16(b)))
	case kindInt64:
		t.ints = append(t.ints, int64(binary.LittleEndian.Uint64(b)))
	case kindInt32:
		t.ints = append(t.ints, int64(int32(binary.LittleEndian.Uint32(b))))
	case kindBool, kindUint8:
		t.ints = append(t.ints, int64(b[0]))
	}
}

// half converts an IEEE 754 binary16 number.
func half(h uint16) float64 {
	exponent, fraction := int(h>>10&31), float64(h&1023)
	v := 0.0
	switch exponent {
	case 0:
		v = math.Ldexp(fraction, -24)
	case 31:
		v = math.Inf(1)
		if fraction != 0 {
			v = math.NaN()
		}
	default:
		v = math.Ldexp(1024+fraction, exponent-25)
	}
	if h>>15 == 1 {
		v = -v
	}
	return v
}

// numbers reads a repeated varint, packed or not.
func (s *stream) numbers(f field, to *[]int64) (bool, error) {
	switch f.kind {
	case varint:
		var v int64
		err := s.num(f, &v)
		*to = append(*to, v)
		if err == nil {
			err = s.keep(8)
		}
		return true, err
	case lengths:
		end, err := s.length(f.end)
		if err != nil {
			return true, err
		}
		if err := s.keep(8 * (end - s.at)); err != nil {
			return true, err
		}
		for s.at < end {
			v, err := s.varint(end)
			if err != nil {
				return true, err
			}
			*to = append(*to, int64(v))
		}
		return true, nil
	}
	return false, nil
}

// floats reads a repeated float, packed or not.
func (s *stream) floats(f field, to *[]float64) (bool, error) {
	switch f.kind {
	case fixed32:
		var v float64
		err := s.single(f, &v)
		*to = append(*to, v)
		return true, err
	case lengths:
		return s.reals(f, to)
	}
	return false, nil
}

// reals reads packed floats, or doubles for field 10.
func (s *stream) reals(f field, to *[]float64) (bool, error) {
	if f.kind == fixed32 {
		return s.floats(f, to)
	}
	if f.kind != lengths {
		return false, nil
	}
	end, err := s.length(f.end)
	if err != nil {
		return true, err
	}
	b, err := s.bytes(end)
	size := 4
	if f.number == 10 {
		size = 8
	}
	for ; len(b) >= size; b = b[size:] {
		if size == 4 {
			*to = append(*to, float64(math.Float32frombits(binary.LittleEndian.Uint32(b))))
		} else {
			*to = append(*to, math.Float64frombits(binary.LittleEndian.Uint64(b)))
		}
	}
	return true, err
}
