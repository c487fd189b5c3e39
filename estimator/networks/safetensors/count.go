package safetensors

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Weights summarizes the headers of a model's files.
type Weights struct {
	// Parameters is the number of the model's parameters of all types. Buffers such as
	// tables and counters are not counted.
	Parameters int64
	// Types lists the number of parameters of each stored type, such as BF16 or 4 bits
	// (bitsandbytes), the most frequent first.
	Types []Stored
	// Notes lists facts that a header lacks, a sentence each.
	Notes []string
}

// Stored is the number of parameters of one type.
type Stored struct {
	Type       string
	Bits       int // of each parameter
	Parameters int64
}

// String names the types, the most frequent first.
func (w *Weights) String() string {
	var parts []string
	for _, t := range w.Types {
		parts = append(parts, fmt.Sprintf("%d %s", t.Parameters, t.Type))
	}
	return strings.Join(parts, ", ")
}

// counter adds up tensors.
type counter struct {
	all   map[string]tensor
	types map[string]Stored
	w     Weights
}

func (c *counter) add(kind string, bits int, numbers int64) {
	c.w.Parameters += numbers
	c.types[kind] = Stored{kind, bits, c.types[kind].Parameters + numbers}
}

// count summarizes all tensors of a model.
func count(all map[string]tensor) *Weights {
	c := &counter{all: all, types: map[string]Stored{}}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		c.tensor(name, all[name])
	}
	c.w.Types = slices.Collect(maps.Values(c.types))
	slices.SortFunc(c.w.Types, func(a, b Stored) int {
		return cmp.Or(cmp.Compare(b.Parameters, a.Parameters), cmp.Compare(a.Type, b.Type))
	})
	return &c.w
}

func (c *counter) has(name string) bool { _, ok := c.all[name]; return ok }

// tensor counts one tensor. It recognizes the quantized formats of bitsandbytes, GPTQ,
// AWQ and the transformers library.
func (c *counter) tensor(name string, t tensor) {
	module, last := "", name
	if i := strings.LastIndexByte(name, '.'); i >= 0 {
		module, last = name[:i], name[i+1:]
	}
	switch {
	case c.has(name + ".quant_state.bitsandbytes__nf4"), c.has(name + ".quant_state.bitsandbytes__fp4"):
		c.add("4 bits (bitsandbytes)", 4, 2*t.numbers)
	case t.Type == "I8" && last == "weight" && c.has(module+".SCB"):
		c.add("8 bits (bitsandbytes)", 8, t.numbers)
	case last == "qweight" && c.has(module+".scales"):
		c.packed(module, t)
	case t.Type == "U8" && strings.HasSuffix(last, "_blocks") && c.has(strings.TrimSuffix(name, "_blocks")+"_scales"):
		c.add("4 bits (MXFP4)", 4, 2*t.numbers)
	case last == "weight_packed":
		c.note("tensors of compressed-tensors: the header does not say their bits; 4 are assumed")
		c.add("4 bits (compressed-tensors)", 4, t.bytes()*2)
	case c.helper(name, module, last) || !number(t.Type):
	default:
		c.add(t.Type, int(bits[t.Type]), t.numbers)
	}
}

func (c *counter) note(text string) {
	if !slices.Contains(c.w.Notes, text) {
		c.w.Notes = append(c.w.Notes, text)
	}
}

// packed counts a matrix of GPTQ or AWQ: numbers of 2 to 8 bits in words of 32. GPTQ
// packs rows, so its words have as many columns as the scales; AWQ packs columns. Both pack
// the zero points along columns, so their shape gives the number of bits.
func (c *counter) packed(module string, t tensor) {
	scales, zeros := c.all[module+".scales"], c.all[module+".qzeros"]
	each := int64(4)
	if len(scales.Shape) == 2 && len(zeros.Shape) == 2 && scales.Shape[1] > 0 {
		each = 32 * zeros.Shape[1] / scales.Shape[1]
	}
	if each < 1 || each > 8 {
		c.note("packed tensors whose scales and zero points do not tell their bits; 4 are assumed")
		each = 4
	}
	kind := "AWQ"
	if len(scales.Shape) == 2 && len(t.Shape) == 2 && scales.Shape[1] == t.Shape[1] {
		kind = "GPTQ"
	}
	c.add(fmt.Sprintf("%d bits (%s)", each, kind), int(each), t.numbers*32/each)
}

// helper reports whether a tensor belongs to the quantization of another, or is a
// buffer: a table of positions or a mask, or a statistic.
func (c *counter) helper(name, module, last string) bool {
	switch last {
	case "absmax", "quant_map", "nested_absmax", "nested_quant_map":
		return true
	case "SCB", "scales", "qzeros", "g_idx":
		return c.has(module+".weight") && last == "SCB" || c.has(module+".qweight")
	case "weight_scale", "weight_scale_inv", "weight_zero_point", "weight_shape", "weight_g_idx", "input_scale":
		return c.has(module+".weight") || c.has(module+".weight_packed")
	case "running_mean", "running_var", "num_batches_tracked", "inv_freq", "position_ids", "masked_bias":
		return true
	}
	return strings.Contains(last, "bitsandbytes__") || strings.HasSuffix(last, "_scales") && c.has(strings.TrimSuffix(name, "_scales")+"_blocks")
}

// number reports whether numbers of a type can be parameters. Integers are ids, masks and
// counters.
func number(kind string) bool {
	return strings.HasPrefix(kind, "F") || kind == "BF16" || kind == "C64"
}
