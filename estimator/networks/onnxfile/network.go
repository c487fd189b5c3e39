package onnxfile

import (
	"fmt"
	"slices"

	"carma/configs/models"
)

// value is a tensor of the graph.
type value struct {
	name  string
	kind  int64
	known bool // its shape is known
	shape []int64
	// batched: it depends on the model's inputs. axis is the dimension of the
	// samples; -1: unknown.
	batched bool
	axis    int
	// ints or floats are its content, if known.
	ints   []int64
	floats []float64
	// weights are the trained tensors that it depends on, if it depends on no
	// input.
	weights []int32
	from    int32   // index of the operator that makes it; -1: the file gives it
	input   bool    // it is an input of the model
	output  bool    // it is an output of the model
	uses    []int32 // indexes of the operators that use it
	info    *info   // its type in the file
	// layer is the index of the layer that makes it, once there is one.
	layer int
	// strided: the elements are not in the order of the shape, so a reshape
	// copies. loose: they may be in any order (fused attention).
	strided, loose bool
}

// noLayer means that no layer makes the value.
const noLayer = -1 << 30

// call is an operator with its values; -1: an optional one is left out.
type call struct {
	*node
	in, out []int32
	done    bool // its layer is made, or it is part of another layer
	told    bool // its output's shape is the file's; what it computes is unknown
}

// network is a graph with its names resolved.
type network struct {
	g        *graph
	values   []value
	calls    []call
	ids      map[string]int32
	batch    int64 // number of samples that the file's own shapes are for
	folded   int   // elements with known content, bounded by maxFolded
	compared int   // comparisons of weights, bounded by maxCompared
	warned   map[string]int
	notes    []string
	// symbols are the sizes of the dimensions that have names.
	symbols map[string]int64
}

func (n *network) warn(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if n.warned[text]++; n.warned[text] == 1 {
		n.notes = append(n.notes, text)
	}
}

// connect resolves names and sorts the operators, each after those whose output
// it uses.
func connect(g *graph) (*network, error) {
	n := &network{g: g, ids: make(map[string]int32, len(g.nodes)), warned: map[string]int{}}
	for i := range g.weights {
		t := &g.weights[i]
		id := n.id(t.name)
		if n.values[id].known {
			return nil, fault("two initializers named %s", short(t.name))
		}
		n.constant(id, t)
	}
	for i := range g.inputs {
		v := &n.values[n.id(g.inputs[i].name)]
		v.info, v.input = &g.inputs[i], true
	}
	for _, list := range [][]info{g.infos, g.outputs} {
		for i := range list {
			if id, ok := n.ids[list[i].name]; ok || list[i].name != "" {
				if !ok {
					id = n.id(list[i].name)
				}
				if n.values[id].info == nil {
					n.values[id].info = &list[i]
				}
			}
		}
	}
	for i := range g.outputs {
		n.values[n.id(g.outputs[i].name)].output = true
	}
	n.calls = make([]call, len(g.nodes))
	for i := range g.nodes {
		c := &n.calls[i]
		c.node = &g.nodes[i]
		for o, name := range c.node.out {
			id := n.output(name, i)
			if name == "" && o == 0 { // LSTMs make it even if it has no name: the states of all steps
				id = int32(len(n.values))
				n.values = append(n.values, value{axis: -1, from: int32(i), layer: noLayer})
			}
			if id == -2 {
				return nil, n.wrong(c, "%s is made twice", short(name))
			}
			c.out = append(c.out, id)
		}
	}
	for i := range n.calls {
		c := &n.calls[i]
		for _, name := range c.node.in {
			id := int32(-1)
			if name != "" {
				var ok bool
				if id, ok = n.ids[name]; !ok {
					return nil, n.wrong(c, "takes %s, which nothing makes", short(name))
				}
				n.values[id].uses = append(n.values[id].uses, int32(i))
			}
			c.in = append(c.in, id)
		}
	}
	return n, n.order()
}

// id is the index of the value with this name; a new value if there is none.
func (n *network) id(name string) int32 {
	id, ok := n.ids[name]
	if !ok {
		id = int32(len(n.values))
		n.ids[name] = id
		n.values = append(n.values, value{name: name, axis: -1, from: -1, layer: noLayer})
	}
	return id
}

// output is the value that call i makes; -1: it has no name; -2: it exists
// already.
func (n *network) output(name string, i int) int32 {
	if name == "" {
		return -1
	}
	id := n.id(name)
	v := &n.values[id]
	if v.from >= 0 || v.known || v.input {
		return -2
	}
	v.from = int32(i)
	return id
}

// constant fills a value from a tensor of the file.
func (n *network) constant(id int32, t *tensor) {
	v := &n.values[id]
	v.kind, v.known, v.shape, v.ints, v.floats = t.kind, true, t.dims, t.ints, t.floats
	if trained(t) {
		v.weights = []int32{id}
	}
}

// wrong is an error that names the operator.
func (n *network) wrong(c *call, format string, args ...any) error {
	name := c.name
	if name == "" && len(c.node.out) > 0 {
		name = c.node.out[0]
	}
	return fault("operator %s (%s): %s", short(name), models.Clip(c.op), fmt.Sprintf(format, args...))
}

// order sorts the calls. ONNX requires that order in the file, but not all files
// have it.
func (n *network) order() error {
	waits := make([]int32, len(n.calls))
	ready := make([]int32, 0, len(n.calls))
	sorted := true
	for i := range n.calls {
		for _, in := range n.calls[i].in {
			if in >= 0 {
				if from := n.values[in].from; from >= 0 {
					waits[i]++
					sorted = sorted && from < int32(i)
				} else if v := &n.values[in]; !v.known && !v.input {
					return n.wrong(&n.calls[i], "takes %s, which nothing makes", short(v.name))
				}
			}
		}
		if waits[i] == 0 {
			ready = append(ready, int32(i))
		}
	}
	if sorted {
		return nil
	}
	for at := 0; at < len(ready); at++ {
		for _, out := range n.calls[ready[at]].out {
			if out < 0 {
				continue
			}
			for _, use := range n.values[out].uses {
				if waits[use]--; waits[use] == 0 {
					ready = append(ready, use)
				}
			}
		}
	}
	if len(ready) < len(n.calls) {
		i := slices.IndexFunc(waits, func(w int32) bool { return w > 0 })
		return n.wrong(&n.calls[i], "takes its own output, over other operators; a graph has no cycles")
	}
	n.reorder(ready)
	return nil
}

// reorder renumbers the calls.
func (n *network) reorder(order []int32) {
	calls, place := make([]call, len(order)), make([]int32, len(order))
	for at, i := range order {
		calls[at], place[i] = n.calls[i], int32(at)
	}
	n.calls = calls
	for i := range n.values {
		v := &n.values[i]
		if v.from >= 0 {
			v.from = place[v.from]
		}
		for j, use := range v.uses {
			v.uses[j] = place[use]
		}
	}
}
