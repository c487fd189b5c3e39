package summary

import (
	"fmt"
	"slices"
	"strings"

	"carma/configs/models"
)

// treeWalk makes rows from the modules of a tree. Shapes follow from the size of
// the input.
type treeWalk struct {
	*assembly
	sequence int64
	tables   map[[2]int64]string // embeddings so far, for tied heads
	visits   int
}

// readTree imports a module tree. A tree has no shapes: they follow from
// Overrides.Image or Sequence.
func readTree(lines []string, at int, o models.Overrides) (*models.Config, error) {
	root, err := parseTree(lines, at)
	if err != nil {
		return nil, err
	}
	w := &treeWalk{assembly: start(models.FromTree), tables: map[[2]int64]string{}}
	if o.Batch == 0 {
		w.warn("the batch is not in a module tree: taken as 1; say it with --batch")
	}
	if err := w.begin(root, o); err != nil {
		return nil, err
	}
	if err := w.walk(root, root.name); err != nil {
		return nil, err
	}
	w.warn("modules are in the order in which they were made; parameters that belong to no listed module are not seen")
	return w.done()
}

// begin finds the model's input, from the first module with weights.
func (w *treeWalk) begin(root *node, o models.Overrides) error {
	first := firstOf(root)
	if first == nil {
		return &models.Error{What: "no convolution, linear layer or embedding in the module tree"}
	}
	in := max(1, at(first.numbers("in_channels", "in_features", "nx", "0"), 0))
	seq := int64(o.Sequence)
	input := models.Input{}
	switch kind := classes[first.class]; {
	case kind == models.Embedding:
		if seq == 0 {
			seq = min(512, positions(root))
			w.warn("the sequence is not in a module tree: taken as %d tokens; say it with --seq", seq)
		}
		input = models.Input{Shape: []int64{seq}, Bytes: 8}
	case kind == models.EmbeddingBag:
		input = models.Input{Shape: []int64{1}, Bytes: 8}
	case kind == models.Convolution:
		side := int64(o.Image)
		if side == 0 {
			side = 224
			w.warn("the image is not in a module tree: taken as 224 x 224; say it with --image")
		}
		input.Shape = []int64{in}
		for range dimsOfClass(first.class) {
			input.Shape = append(input.Shape, side)
		}
	case seq > 0:
		input.Shape = []int64{seq, in}
	default:
		input.Shape = []int64{in}
	}
	w.sequence = max(1, seq)
	w.c.Inputs = []models.Input{input}
	return nil
}

func at(list []int64, i int) int64 {
	if i < len(list) {
		return list[i]
	}
	return 0
}

// dimsOfClass is 2 of Conv2d.
func dimsOfClass(class string) int {
	for i, digit := range []string{"1d", "2d", "3d"} {
		if strings.Contains(class, digit) {
			return i + 1
		}
	}
	return 2
}

func firstOf(n *node) *node {
	switch classes[n.class] {
	case models.Convolution, models.Linear, models.Embedding, models.EmbeddingBag:
		if len(n.nodes) == 0 {
			return n
		}
	}
	for _, sub := range n.nodes {
		if found := firstOf(sub); found != nil {
			return found
		}
	}
	return nil
}

// positions is the length of the table of positions, the most tokens of a
// sequence.
func positions(n *node) int64 {
	least := int64(512)
	if classes[n.class] == models.Embedding && positional(n.name) {
		if p, ok := n.number("num_embeddings", "0"); ok && p > 0 {
			least = p
		}
	}
	for _, sub := range n.nodes {
		least = min(least, positions(sub))
	}
	return least
}

func positional(name string) bool {
	return strings.Contains(name, "position") || strings.HasSuffix(name, "wpe")
}

// walk adds the modules below n in order.
func (w *treeWalk) walk(n *node, path string) error {
	if w.visits++; w.visits > maxModules {
		return &models.Error{What: fmt.Sprintf("more than %d modules", maxModules)}
	}
	w.detector = w.detector || detects(n.class)
	if n.class == "MultiheadAttention" {
		w.multihead(n, path)
		return nil
	}
	if len(n.nodes) == 0 {
		w.leaf(n, path)
		return nil
	}
	if n.class == "XLNetRelativeAttention" {
		w.relative(n, path)
	}
	if strings.HasPrefix(n.class, "Squeeze") || n.class == "SEModule" {
		// The block ends by scaling its input.
		before := slices.Clone(w.last())
		defer func() { w.add(&row{name: path, class: n.class, out: before}) }()
	}
	for _, sub := range n.nodes {
		for i := range sub.repeat {
			name := sub.name
			if sub.repeat > 1 {
				first, _, _ := strings.Cut(name, "-")
				var from int
				_, _ = fmt.Sscan(first, &from)
				name = fmt.Sprint(from + i)
			}
			if err := w.walk(sub, join(path, name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// multihead adds a module of four projections, of which the tree shows one.
func (w *treeWalk) multihead(n *node, path string) {
	var e int64
	for _, sub := range n.nodes {
		if sub.name == "out_proj" {
			e, _ = sub.number("in_features", "0")
		}
	}
	if e < 1 || e > 1<<20 {
		return
	}
	w.add(&row{name: path, class: n.class, out: w.wide(e), tensors: []int64{3 * e * e, 3 * e, e * e, e}})
}

// relative adds XLNet's attention, whose projections are no modules.
func (w *treeWalk) relative(n *node, path string) {
	var e int64
	for _, sub := range n.nodes {
		if sub.class == "LayerNorm" {
			e, _ = sub.number("normalized_shape", "0")
		}
	}
	if e < 1 || e > 1<<20 {
		return
	}
	w.warnOnce("the projections of XLNet's attention are no modules: taken as 5 matrices of its width")
	w.hidden++
	tensors := []int64{e * e, e * e, e * e, e * e, e * e, e, e, e, 2 * e}
	heads := max(1, e/64)
	w.c.Layers = append(w.c.Layers, models.Layer{Name: path, Type: models.Attention, Out: w.wide(e), Params: tensors, Heads: heads, Unfused: true})
}

func (w *treeWalk) warnOnce(text string) {
	if !slices.Contains(w.c.Warnings, text) {
		w.warn("%s", text)
	}
}

// wide is the shape of a sequence of this width.
func (w *treeWalk) wide(width int64) []int64 {
	if last := w.last(); len(last) == 2 {
		return []int64{last[0], width}
	}
	return []int64{w.sequence, width}
}

// join is the path of a module within another.
func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
