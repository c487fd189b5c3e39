package onnxfile

import (
	"encoding/binary"

	"google.golang.org/protobuf/encoding/protowire"
)

// This file makes small ONNX files, field by field.

func message(b []byte, number protowire.Number, parts ...[]byte) []byte {
	var all []byte
	for _, p := range parts {
		all = append(all, p...)
	}
	b = protowire.AppendTag(b, number, protowire.BytesType)
	return protowire.AppendBytes(b, all)
}

func text(number protowire.Number, s string) []byte { return message(nil, number, []byte(s)) }

func number(field protowire.Number, v int64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, field, protowire.VarintType), uint64(v))
}

func dimsOf(field protowire.Number, dims ...int64) (b []byte) {
	for _, d := range dims {
		b = append(b, number(field, d)...)
	}
	return b
}

// onnx is a ModelProto whose graph has these parts.
func onnx(parts ...[]byte) []byte {
	b := number(1, 8)
	b = append(b, message(nil, 8, number(2, 20))...)
	return append(b, message(nil, 7, parts...)...)
}

// op is a node with its inputs, outputs and attributes.
func op(kind, name string, in, out []string, attrs ...[]byte) []byte {
	var b []byte
	for _, s := range in {
		b = append(b, text(1, s)...)
	}
	for _, s := range out {
		b = append(b, text(2, s)...)
	}
	b = append(b, text(3, name)...)
	b = append(b, text(4, kind)...)
	for _, a := range attrs {
		b = append(b, a...)
	}
	return message(nil, 1, b)
}

func in(names ...string) []string { return names }

func attrInt(name string, v int64) []byte {
	return message(nil, 5, text(1, name), number(3, v))
}

func attrInts(name string, list ...int64) []byte {
	return message(nil, 5, text(1, name), dimsOf(8, list...))
}

// weight is a float initializer without data.
func weight(name string, dims ...int64) []byte {
	return message(nil, 5, dimsOf(1, dims...), number(2, kindFloat), text(8, name))
}

// ints is an initializer of integers.
func ints(name string, list ...int64) []byte {
	var raw []byte
	for _, v := range list {
		raw = binary.LittleEndian.AppendUint64(raw, uint64(v))
	}
	return message(nil, 5, dimsOf(1, int64(len(list))), number(2, kindInt64), text(8, name), message(nil, 9, raw))
}

// scalar is a float initializer of one number.
func scalar(name string, v uint32) []byte {
	return message(nil, 5, number(2, kindFloat), text(8, name), message(nil, 9, binary.LittleEndian.AppendUint32(nil, v)))
}

// typed is a ValueInfoProto. A dimension of 0 or more is a number; -1, -2, ...
// are the names d1, d2, ...
func typed(field protowire.Number, name string, kind int64, dims ...int64) []byte {
	var shape []byte
	for _, d := range dims {
		one := number(1, d)
		if d < 0 {
			one = text(2, "d"+string(rune('0'-d)))
		}
		shape = message(shape, 1, one)
	}
	return message(nil, field, text(1, name), message(nil, 2, message(nil, 1, number(1, kind), message(nil, 2, shape))))
}
