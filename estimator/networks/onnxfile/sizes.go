package onnxfile

import (
	"slices"
	"strings"

	"carma/configs/models"
)

// Sizes of dimensions for which the file has only a name and no flag has a size.
const (
	defaultImage    = 224
	defaultSequence = 128
)

// sizing chooses the sizes of the dimensions of the model's inputs.
type sizing struct {
	*network
	o     models.Overrides
	image bool // --image was used
	seq   bool
	table int64 // length of the table of positions; 0: not searched yet
}

// place gives the inputs of the model their shapes. Old files list initializers
// among the inputs; they are left out.
func (n *network) place(o models.Overrides) ([]int32, error) {
	s := &sizing{network: n, o: o}
	n.symbols = map[string]int64{}
	var ids []int32
	for i := range n.g.inputs {
		in := &n.g.inputs[i]
		if id := n.ids[in.name]; !n.values[id].known && len(n.values[id].uses) > 0 {
			if !in.ranked {
				return nil, fault("input %s has no shape; export it with one", short(in.name))
			}
			if len(in.dims) > maxRank {
				return nil, fault("input %s has %d dimensions; at most %d", short(in.name), len(in.dims), maxRank)
			}
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 || len(ids) > models.MaxList {
		return nil, fault("%d inputs that an operator takes; a model has 1 to %d", len(ids), models.MaxList)
	}
	sample := s.samples(ids)
	for _, id := range ids {
		if err := s.fill(&n.values[id], sample); err != nil {
			return nil, err
		}
	}
	return ids, s.unused()
}

// samples finds the name of the batch dimension. Without a name, it finds the
// number of samples of the file's shapes.
func (s *sizing) samples(ids []int32) (name string) {
	s.batch = 1
	for _, id := range ids {
		for _, d := range s.values[id].info.dims {
			if !d.given && batchName(d.name) {
				return d.name
			}
		}
	}
	for _, id := range ids {
		if dims := s.values[id].info.dims; len(dims) > 1 || len(dims) == 1 && len(ids) == 1 {
			if d := dims[0]; d.given && d.size > 0 {
				s.batch = d.size
			} else if !d.given {
				return d.name
			}
			break
		}
	}
	return ""
}

func batchName(name string) bool {
	name = strings.ToLower(name)
	return strings.Contains(name, "batch") || name == "n" || name == "b" || name == "bs"
}

// fill gives one input its shape.
func (s *sizing) fill(v *value, sample string) error {
	dims := v.info.dims
	v.shape, v.kind, v.known, v.batched = make([]int64, len(dims)), v.info.kind, true, true
	for i, d := range dims {
		isSample := sample != "" && d.name == sample && !d.given || sample == "" && d.given && d.size == s.batch
		if isSample && v.axis < 0 {
			v.axis = i
		}
		switch size, ok := s.symbols[d.name]; {
		case d.given:
			v.shape[i] = d.size
		case isSample && sample != "" || d.name == "" && i == 0:
			v.shape[i] = s.batch
			s.symbols[d.name] = s.batch
		case d.name != "" && ok:
			v.shape[i] = size
		default:
			v.shape[i] = s.choose(v, i)
			s.symbols[d.name] = v.shape[i]
		}
	}
	delete(s.symbols, "")
	if v.axis < 0 && len(dims) > 0 && !dims[0].given {
		v.axis = 0
	}
	if what := shapeFault(v.shape); what != "" {
		return fault("input %s: %s", short(v.name), what)
	}
	return nil
}

// choose returns the size of a named dimension: of an image, or else of a
// sequence.
func (s *sizing) choose(v *value, i int) int64 {
	if rank := len(v.shape); rank >= 4 && i >= 2 && real(v.kind) {
		s.image = true
		if s.o.Image > 0 {
			return int64(s.o.Image)
		}
		s.warn("the file leaves the image's size open: taken as %d; say it with --image", defaultImage)
		return defaultImage
	}
	s.seq = true
	if s.o.Sequence > 0 {
		return int64(s.o.Sequence)
	}
	size := min(defaultSequence, s.positions())
	s.warn("the file leaves %s of the input open: taken as %d; say it with --seq", short(v.info.dims[i].name), size)
	return size
}

// positions is the length of a table of positions, the most tokens of a sequence.
func (s *sizing) positions() int64 {
	if s.table > 0 {
		return s.table
	}
	least := int64(defaultSequence)
	for i := range s.g.weights {
		t := &s.g.weights[i]
		name := t.name
		if (strings.Contains(name, "position_embedding") || strings.Contains(name, "wpe.")) && len(t.dims) == 2 {
			least = min(least, max(1, t.dims[0]))
		}
	}
	s.table = least
	return least
}

// unused refuses sizes that the file has fixed.
func (s *sizing) unused() error {
	for _, f := range []struct {
		field string
		value int
		used  bool
	}{
		{"image", s.o.Image, s.image}, {"seq", s.o.Sequence, s.seq}, {"classes", s.o.Classes, false},
		{"vocabulary", s.o.Vocabulary, false}, {"lora", s.o.LoRA, false},
	} {
		if f.value != 0 && !f.used {
			return &models.Error{Field: f.field, What: "the file has it fixed; leave it out, or export the model with that dimension left open"}
		}
	}
	return nil
}

// resolve is a value's shape in the file; not ok: it is not complete.
func (n *network) resolve(v *info) ([]int64, bool) {
	if v == nil || !v.ranked {
		return nil, false
	}
	shape := make([]int64, len(v.dims))
	for i, d := range v.dims {
		size, named := n.symbols[d.name]
		switch {
		case d.given:
			shape[i] = d.size
		case d.name != "" && named:
			shape[i] = size
		default:
			return nil, false
		}
	}
	return shape, true
}

// perSample is the shape of a value for one sample. whole: its size does not
// depend on the batch.
func (n *network) perSample(v *value) (shape []int64, whole bool) {
	shape = slices.Clone(v.shape)
	at := v.axis
	if !v.batched || len(shape) == 0 {
		at = -1
	} else if at < 0 {
		at = slices.IndexFunc(shape, func(d int64) bool { return d%n.batch == 0 })
	}
	switch {
	case at < 0 || shape[at]%n.batch != 0:
		whole = true
	case shape[at] == n.batch:
		shape = slices.Delete(shape, at, at+1)
	default:
		shape[at] /= n.batch
	}
	for i := range shape {
		shape[i] = max(1, shape[i])
	}
	for len(shape) > models.MaxDims {
		shape[1] = models.Times(shape[0], shape[1])
		shape = shape[1:]
	}
	return shape, whole
}
