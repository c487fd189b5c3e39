package onnxfile

import (
	"io"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"carma/configs/models"
)

// Field numbers of the parts of onnx.proto3 (github.com/onnx/onnx,
// onnx/onnx.proto3) from which shapes follow.
const (
	varint  = protowire.VarintType
	lengths = protowire.BytesType
	fixed32 = protowire.Fixed32Type
)

// graph is a file's graph.
type graph struct {
	opset     int64 // version of the standard operators
	nodes     []node
	weights   []tensor // initializers
	inputs    []info
	outputs   []info
	infos     []info
	functions map[string]bool // domain and name of the functions that the file defines
}

// node is one operator's call.
type node struct {
	op, domain, name string
	in, out          []string
	attrs            []attribute
}

// attribute is a setting of an operator. Subgraphs are not read.
type attribute struct {
	name   string
	i      int64
	f      float64
	s      string
	ints   []int64
	floats []float64
	t      *tensor
	graph  bool
}

// tensor is a constant or a weight. Only a small one has its data.
type tensor struct {
	name   string
	kind   int64 // a TensorProto.DataType
	dims   []int64
	ints   []int64 // content of small tensors of whole numbers
	floats []float64
}

// info is the type of a value.
type info struct {
	name   string
	kind   int64
	ranked bool // it has a shape
	dims   []dim
}

// dim is a number or a name; neither: unknown.
type dim struct {
	size  int64
	given bool
	name  string
}

// decode reads a ModelProto.
func decode(r io.Reader) (*graph, error) {
	s, end := newStream(r)
	g := &graph{functions: map[string]bool{}}
	found := false
	err := s.message(end, func(f field) (bool, error) {
		switch {
		case f.is(7, lengths):
			if found {
				return true, s.damaged("a second graph")
			}
			found = true
			return true, s.graph(f, g)
		case f.is(8, lengths):
			return true, s.opset(f, g)
		case f.is(25, lengths):
			return true, s.function(f, g)
		}
		return false, nil
	})
	if err == nil && (!found || len(g.nodes) == 0) {
		err = fault("no graph with operators in it; not an ONNX model")
	}
	return g, err
}

func (s *stream) opset(f field, g *graph) error {
	domain, version := "", int64(0)
	err := s.sub(f, func(f field) (bool, error) {
		switch {
		case f.is(1, lengths):
			return true, s.str(f, &domain)
		case f.is(2, varint):
			return true, s.num(f, &version)
		}
		return false, nil
	})
	if domain == "" || domain == "ai.onnx" {
		g.opset = version
	}
	return err
}

func (s *stream) function(f field, g *graph) error {
	var domain, name string
	err := s.sub(f, func(f field) (bool, error) {
		switch {
		case f.is(1, lengths):
			return true, s.str(f, &name)
		case f.is(10, lengths):
			return true, s.str(f, &domain)
		}
		return false, nil
	})
	g.functions[domain+"."+name] = true
	return err
}

func (s *stream) graph(f field, g *graph) error {
	return s.sub(f, func(f field) (bool, error) {
		switch {
		case f.is(1, lengths):
			if len(g.nodes) == models.MaxLayers {
				return true, fault("more than %d operators", models.MaxLayers)
			}
			var n node
			err := s.node(f, &n)
			g.nodes = append(g.nodes, n)
			return true, err
		case f.is(5, lengths):
			t, err := s.tensor(f)
			g.weights = append(g.weights, t)
			return true, err
		case f.is(11, lengths):
			return true, s.info(f, &g.inputs)
		case f.is(12, lengths):
			return true, s.info(f, &g.outputs)
		case f.is(13, lengths):
			return true, s.info(f, &g.infos)
		}
		return false, nil
	})
}

func (s *stream) node(f field, n *node) error {
	return s.sub(f, func(f field) (bool, error) {
		if f.kind != lengths {
			return false, nil
		}
		switch f.number {
		case 1:
			return true, s.add(f, &n.in)
		case 2:
			return true, s.add(f, &n.out)
		case 3:
			return true, s.str(f, &n.name)
		case 4:
			return true, s.str(f, &n.op)
		case 5:
			return true, s.attribute(f, n)
		case 7:
			return true, s.str(f, &n.domain)
		}
		return false, nil
	})
}

func (s *stream) attribute(f field, n *node) error {
	var a attribute
	err := s.sub(f, func(f field) (bool, error) {
		switch {
		case f.is(1, lengths):
			return true, s.str(f, &a.name)
		case f.is(2, fixed32):
			return true, s.single(f, &a.f)
		case f.is(3, varint):
			return true, s.num(f, &a.i)
		case f.is(4, lengths):
			return true, s.str(f, &a.s)
		case f.is(5, lengths):
			t, err := s.tensor(f)
			a.t = &t
			return true, err
		case f.is(6, lengths):
			a.graph = true
		case f.number == 7:
			return s.floats(f, &a.floats)
		case f.number == 8:
			return s.numbers(f, &a.ints)
		}
		return false, nil
	})
	n.attrs = append(n.attrs, a)
	return err
}

func (s *stream) info(f field, list *[]info) error {
	var v info
	err := s.sub(f, func(f field) (bool, error) {
		switch {
		case f.is(1, lengths):
			return true, s.str(f, &v.name)
		case f.is(2, lengths):
			return true, s.sub(f, func(f field) (bool, error) {
				if !f.is(1, lengths) {
					return false, nil // another type: a sequence, a map
				}
				return true, s.tensorType(f, &v)
			})
		}
		return false, nil
	})
	*list = append(*list, v)
	return err
}

func (s *stream) tensorType(f field, v *info) error {
	return s.sub(f, func(f field) (bool, error) {
		switch {
		case f.is(1, varint):
			return true, s.num(f, &v.kind)
		case f.is(2, lengths):
			v.ranked = true
			return true, s.sub(f, func(f field) (bool, error) {
				if !f.is(1, lengths) {
					return false, nil
				}
				var d dim
				err := s.sub(f, func(f field) (bool, error) {
					switch {
					case f.is(1, varint):
						d.given = true
						return true, s.num(f, &d.size)
					case f.is(2, lengths):
						return true, s.str(f, &d.name)
					}
					return false, nil
				})
				v.dims = append(v.dims, d)
				return true, err
			})
		}
		return false, nil
	})
}

func (s *stream) str(f field, to *string) error {
	text, err := s.text(f.end)
	*to = text
	return err
}

func (s *stream) add(f field, list *[]string) error {
	text, err := s.text(f.end)
	*list = append(*list, text)
	if err == nil {
		err = s.keep(16)
	}
	return err
}

func (s *stream) num(f field, to *int64) error {
	v, err := s.varint(f.end)
	*to = int64(v)
	return err
}

func (s *stream) single(f field, to *float64) error {
	if f.end-s.at < 4 {
		return s.damaged("a number that does not end")
	}
	b, err := s.bytes(s.at + 4)
	if err == nil {
		v, _ := protowire.ConsumeFixed32(b)
		*to = float64(math.Float32frombits(v))
	}
	return err
}
