package summary

import (
	"slices"

	"carma/configs/models"
)

// leaf adds a module that has no modules.
func (w *treeWalk) leaf(n *node, path string) {
	kind, ok := typeOf(n.class)
	r := row{name: path, class: n.class, out: slices.Clone(w.last()), inPlace: n.yes("inplace", false)}
	switch kind {
	case models.Convolution, models.ConvTranspose:
		ok = w.convolve(n, &r, kind == models.ConvTranspose)
	case models.Linear:
		ok = w.project(n, &r)
	case models.Embedding, models.EmbeddingBag:
		ok = w.look(n, &r, kind)
	case models.BatchNorm, models.InstanceNorm, models.GroupNorm, models.LayerNorm, models.RMSNorm:
		w.normalize(n, &r, kind)
	case models.MaxPool, models.AvgPool, models.Mean:
		w.pool(n, &r, kind)
	case models.Upsample:
		if f, given := n.number("scale_factor"); given && len(r.out) > 1 {
			for i := 1; i < len(r.out); i++ {
				r.out[i] = max(1, models.Times(r.out[i], max(1, f)))
			}
		}
	case models.PReLU:
		p, _ := n.number("num_parameters")
		r.tensors = []int64{max(1, p)}
	case models.View:
		if n.class == "Flatten" {
			r.out = []int64{models.Product(r.out)}
		}
	}
	if !ok && n.params > 0 {
		r.params, r.tensors = n.params, nil
	} else if !ok {
		r.class = "Identity" // an unknown module: without parameters, or it tells nothing
	}
	w.add(&r)
}

// convolve sets the output shape of a convolution, by PyTorch's formula.
func (w *treeWalk) convolve(n *node, r *row, transposed bool) bool {
	cin, _ := n.number("in_channels", "0")
	cout, _ := n.number("out_channels", "1")
	if cin < 1 || cout < 1 {
		return false
	}
	dims := dimsOfClass(n.class)
	r.in = w.channels(cin, dims)
	kernel, stride := n.each("kernel_size", dims, 1), n.each("stride", dims, 1)
	pad, dilation, extra := n.each("padding", dims, 0), n.each("dilation", dims, 1), n.each("output_padding", dims, 0)
	groups := max(1, at(n.numbers("groups"), 0))
	r.out = []int64{cout}
	for i := range dims {
		in, k, s := r.in[i+1], max(1, kernel[i]), max(1, stride[i])
		reach := models.Plus(models.Times(dilation[i], k-1), 1)
		size := int64(0)
		switch {
		case n.args["padding"] == "same":
			size = (in-1)/s + 1
		case transposed:
			size = models.Plus(models.Times(in-1, s), models.Plus(reach, extra[i])) - 2*pad[i]
		default:
			size = (models.Plus(in, 2*pad[i])-reach)/s + 1
		}
		kernel[i] = k
		r.out = append(r.out, max(1, size))
	}
	r.kernel, r.stride = kernel, max(1, stride[0])
	if r.groups = groups; groups == 1 {
		r.groups = 0
	}
	weights := models.Times(models.Times(cin/min(cin, groups), cout), models.Product(kernel))
	if r.tensors = []int64{weights}; n.yes("bias", true) {
		r.tensors = append(r.tensors, cout)
	}
	return true
}

// channels finds the nearest shape before with this many channels.
func (w *treeWalk) channels(c int64, dims int) []int64 {
	side := int64(1)
	for i := len(w.c.Layers) - 1; i >= 0 && i > len(w.c.Layers)-lookBack; i-- {
		out := w.c.Layers[i].Out
		if len(out) == dims+1 && out[0] == c {
			return slices.Clone(out)
		}
		if len(out) == dims+1 && side == 1 {
			side = out[dims]
		}
	}
	shape := []int64{c}
	for i := range dims {
		if in := w.c.Inputs[0].Shape; len(w.c.Layers) == 0 && len(in) == dims+1 {
			shape = append(shape, in[i+1])
		} else {
			shape = append(shape, side)
		}
	}
	return shape
}

// project adds a linear layer. GPT-2 calls it Conv1D.
func (w *treeWalk) project(n *node, r *row) bool {
	in, _ := n.number("in_features", "nx", "0")
	out, _ := n.number("out_features", "nf", "1")
	last := w.last()
	if n.class == "Conv1D" && (in == 0 || out == 0) && n.params > 0 && len(last) > 0 {
		for _, width := range []int64{last[len(last)-1], last[len(last)-1] / 3} {
			if width > 0 && n.params%(width+1) == 0 {
				in, out = width, n.params/(width+1)
				break
			}
		}
	}
	if in < 1 || out < 1 {
		return false
	}
	r.features = in
	if r.tensors = []int64{models.Times(in, out)}; n.yes("bias", true) {
		r.tensors = append(r.tensors, out)
	}
	if len(last) > 1 && last[len(last)-1] != in && models.Product(last) != in && last[0] != in {
		for i := len(w.c.Layers) - 2; i >= 0 && i > len(w.c.Layers)-lookBack; i-- {
			if takes(w.c.Layers[i].Out, in) {
				last = w.c.Layers[i].Out
				break
			}
		}
	}
	switch {
	case len(last) > 0 && last[len(last)-1] == in:
		r.out = append(slices.Clone(last[:len(last)-1]), out)
	case len(last) == 2 && w.sequence > 1 && last[0] == w.sequence:
		r.out = []int64{w.sequence, out}
	default:
		r.out = []int64{out}
	}
	if name := w.tables[[2]int64{out, in}]; name != "" && out > 1000 {
		r.tied = true
		w.warn("%s has the size of %s: taken as tied to it", models.Clip(r.name), models.Clip(name))
	}
	return true
}

// look adds a table of embeddings.
func (w *treeWalk) look(n *node, r *row, kind string) bool {
	rows, _ := n.number("num_embeddings", "0")
	width, _ := n.number("embedding_dim", "1")
	if rows < 1 || width < 1 {
		return false
	}
	r.tensors = []int64{models.Times(rows, width)}
	if r.out = []int64{w.sequence, width}; kind == models.EmbeddingBag {
		r.out = []int64{width}
	}
	if r.whole = positional(r.name); !r.whole {
		w.tables[[2]int64{rows, width}] = r.name
	}
	return true
}

func (w *treeWalk) normalize(n *node, r *row, kind string) {
	size := n.numbers("num_features", "num_channels", "normalized_shape", "0")
	if kind == models.GroupNorm {
		size = n.numbers("num_channels", "1")
	}
	params := max(1, models.Product(positive(size)))
	affine := kind != models.InstanceNorm
	if n.yes("affine", affine) && n.yes("elementwise_affine", affine) && len(size) > 0 {
		if r.tensors = []int64{params, params}; kind == models.RMSNorm {
			r.tensors = r.tensors[:1]
		}
	}
	if len(size) > 0 && len(r.out) > 0 && kind == models.LayerNorm && r.out[len(r.out)-1] != size[len(size)-1] {
		for i := len(w.c.Layers) - 2; i >= 0 && i > len(w.c.Layers)-lookBack; i-- {
			if out := w.c.Layers[i].Out; len(out) > 0 && out[len(out)-1] == size[len(size)-1] {
				r.in, r.out = out, slices.Clone(out)
				return
			}
		}
	}
}

func (w *treeWalk) pool(n *node, r *row, kind string) {
	dims := len(r.out) - 1
	if dims < 1 {
		return
	}
	if kind == models.Mean || len(n.numbers("output_size")) > 0 {
		for i, d := range n.each("output_size", dims, 1) {
			r.out[i+1] = max(1, d)
		}
		return
	}
	k := n.each("kernel_size", dims, 2)
	s, pad := n.each("stride", dims, k[0]), n.each("padding", dims, 0)
	for i := range dims {
		room := models.Plus(r.out[i+1], 2*pad[i]) - k[i]
		if n.yes("ceil_mode", false) {
			room = models.Plus(room, max(1, s[i])-1)
		}
		r.out[i+1] = max(1, room/max(1, s[i])+1)
	}
	r.kernel, r.stride = positive(k), max(1, s[0])
}
