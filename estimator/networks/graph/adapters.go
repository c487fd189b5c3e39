package graph

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"carma/configs/models"
)

// allLinear selects every linear layer except the last for adapters.
const allLinear = "all-linear"

// heads lists names of last layers. Like PEFT, all-linear selects no layer with such a
// name.
var heads = []string{"lm_head", "decoder", "classifier", "head", "heads", "fc", "score"}

// adapters has the settings of adapters (LoRA), and the layers that could have them.
type adapters struct {
	Rank    int64    // rank of the adapters, or 0 if everything is trained
	Targets []string // names of the layers that get adapters, or none for the builder's default

	dora    bool            // adapters have a magnitude
	linears map[string]bool // names of all linear layers, collected if there are targets
	adapts  int             // adapters added so far
}

// Adapted adds a linear layer that gets an adapter if the user names no layers.
func (g *Graph) Adapted(name string, in int, out int64, bias bool) int {
	if g.Rank == 0 || len(g.Targets) > 0 {
		return g.Linear(name, in, out, bias)
	}
	return g.adapter(name, in, out, bias)
}

// targeted reports whether the user requested an adapter for the layer called name. Only
// the last part of the name counts.
func (a *adapters) targeted(name string) bool {
	if a.Rank == 0 {
		return false
	}
	last := name[strings.LastIndexByte(name, '.')+1:]
	if a.linears == nil {
		a.linears = map[string]bool{}
	}
	a.linears[last] = true
	if slices.Contains(a.Targets, allLinear) {
		return !slices.Contains(heads, last)
	}
	return slices.Contains(a.Targets, last)
}

// adapter adds a linear layer and its adapter (LoRA): two small linear layers, whose
// scaled output is added. PEFT keeps an adapter in 32 bits, regardless of the network's
// precision.
func (g *Graph) adapter(name string, in int, out int64, bias bool) int {
	base := g.Plain(name, in, out, bias)
	defer g.Module(name)()
	rank := g.Rank
	g.Rank = 0 // the adapter is trained
	down := g.Plain("lora_A", in, rank, false)
	up := g.Plain("lora_B", down, out, false)
	g.Layers[down].Bits, g.Layers[up].Bits = 32, 32
	g.Rank = rank
	g.adapts++
	if g.dora {
		return g.Plus("lora_add", base, g.magnitude(base, up, out))
	}
	return g.Plus("lora_add", base, g.Scale("lora_scale", up))
}

// magnitude scales each column of the network's output and of the adapter's output by
// learned 32-bit numbers (DoRA, arXiv 2402.09353, as PEFT computes it). The outputs and
// the numbers are kept for the gradients. Each forward pass computes the norms of the
// weights and keeps nothing of that computation.
func (g *Graph) magnitude(base, up int, out int64) int {
	i := g.Op(models.Mul, "lora_magnitude", g.Shape(base), base, up)
	g.Layers[i].Params, g.Layers[i].Bits = []int64{out}, 32
	return g.Keeping(i, models.Keeps{Inputs: []int{0, 1}})
}

// checkAdapters refuses adapters that would train nothing.
func (a *adapters) checkAdapters() error {
	switch {
	case a.Rank == 0 && a.dora:
		return fmt.Errorf("DoRA decomposes adapters; give their rank as well (LoRA), for example 16")
	case a.Rank == 0 && len(a.Targets) > 0:
		return fmt.Errorf("layers for adapters are named, but no rank; give the rank as well, for example 16")
	case a.Rank == 0 || a.adapts > 0:
		return nil
	case len(a.Targets) == 0:
		return fmt.Errorf("has no linear query and value projections for adapters (LoRA)")
	}
	names := slices.Sorted(maps.Keys(a.linears))
	return fmt.Errorf("has no layer %s for adapters (LoRA); it has %s, and %s is every one but the last", strings.Join(a.Targets, ", "), strings.Join(names, ", "), allLinear)
}

// quantize stores the frozen matrices of linear layers with 4 or 8 bits a number. PEFT's
// preparation converts other frozen parameters to 32 bits, unless the training has 16-bit
// weights.
func quantize(c *models.Config, bits int) {
	for i := range c.Layers {
		l := &c.Layers[i]
		last := l.Name[strings.LastIndexByte(l.Name, '.')+1:]
		if l.Type == models.Linear && l.Frozen && !slices.Contains(heads, last) {
			l.Bits = bits
		}
	}
}

// Trained adds layers that are trained in addition to adapters, as PEFT trains the layers
// of a new head.
func (a *adapters) Trained(add func()) {
	rank := a.Rank
	a.Rank = 0
	add()
	a.Rank = rank
}
