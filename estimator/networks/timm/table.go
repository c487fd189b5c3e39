package timm

import (
	"fmt"

	"carma/configs/models"
)

// Flags of a layer.
const (
	flagInPlace = 1 << iota
	flagWhole
	flagOutput // its output is kept for the backward pass
	flagFrozen
	flagGeometry // it has a kernel, a stride or groups
	flagKeeps    // the columns have its Keeps
)

// decode reads the columns of a model, in this order: the input's shape; the
// distinct shapes; the number of layers; then for all layers their types, flags,
// shapes, inputs (how many layers back), params, geometry if flagged, kept
// inputs, and kept bytes per sample and for the whole batch.
func decode(b []byte, types []string) (*Table, error) {
	r := &reader{b: b}
	t := &Table{Input: r.ints(1)}
	shapes := make([][]int64, r.count())
	for i := range shapes {
		shapes[i] = r.ints(1)
	}
	layers := make([]models.Layer, r.count())
	flags := make([]uint64, len(layers))
	for i := range layers {
		layers[i].Type = pick(r, types)
	}
	for i := range layers {
		flags[i] = r.uint()
		layers[i].InPlace = flags[i]&flagInPlace != 0
		layers[i].Whole = flags[i]&flagWhole != 0
		layers[i].Frozen = flags[i]&flagFrozen != 0
	}
	for i := range layers {
		layers[i].Out = append([]int64(nil), pick(r, shapes)...)
	}
	for i := range layers {
		layers[i].Inputs = readInputs(r, i)
	}
	for i := range layers {
		layers[i].Params = r.ints(0)
	}
	for i := range layers {
		if flags[i]&flagGeometry != 0 {
			layers[i].Kernel, layers[i].Stride, layers[i].Groups = r.ints(1), r.int(), r.int()
		}
	}
	for i := range layers {
		if flags[i]&flagKeeps != 0 {
			layers[i].Keeps = readKeeps(r, len(layers[i].Inputs), flags[i]&flagOutput != 0)
		}
	}
	for _, k := range keeps(layers) {
		k.Bytes = r.int()
	}
	for _, k := range keeps(layers) {
		k.Whole = r.int()
	}
	if r.bad || len(r.b) > 0 || len(t.Input) == 0 {
		return nil, errDamaged
	}
	for i, l := range layers {
		if len(l.Out) == 0 || l.Type == "" {
			return nil, fmt.Errorf("%w: layer %d", errDamaged, i)
		}
	}
	t.Layers = layers
	return t, nil
}

func pick[T any](r *reader, from []T) T {
	i := r.uint()
	if i >= uint64(len(from)) {
		r.bad = true
		var none T
		return none
	}
	return from[i]
}

func readInputs(r *reader, i int) []int {
	n := r.count()
	if n == 0 {
		return nil
	}
	in := make([]int, n)
	for k := range in {
		back := r.uint()
		if back < 1 || back > uint64(i)+1 {
			r.bad = true
			continue
		}
		in[k] = i - int(back)
	}
	return in
}

func readKeeps(r *reader, inputs int, output bool) *models.Keeps {
	k := &models.Keeps{Output: output}
	for _, at := range r.ints(0) {
		if at >= int64(inputs) {
			r.bad = true
			continue
		}
		k.Inputs = append(k.Inputs, int(at))
	}
	return k
}

// keeps lists the Keeps of the layers that have one.
func keeps(layers []models.Layer) []*models.Keeps {
	var all []*models.Keeps
	for i := range layers {
		if k := layers[i].Keeps; k != nil {
			all = append(all, k)
		}
	}
	return all
}
