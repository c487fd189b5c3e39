package step

import (
	"slices"

	"carma/configs/models"
)

// Tensor parallelism (tp:N) follows Megatron-LM (arXiv 1909.08053, section 3) and
// PyTorch's ColwiseParallel and RowwiseParallel. Within a block, a linear layer with a
// whole input is split by columns, so that each GPU has a part of its output. A linear
// layer with such a part as input is split by rows. Its outputs are added over the GPUs,
// so that each GPU has the whole sum. Operations between the two layers work on parts,
// and attention on a part of the heads. Norms, residual sums, tables and the head are
// whole on each GPU.

// splits reports whether a layer's weights and its output are split over the GPUs.
func (p *planner) splits(i int, l *models.Layer, from []int32) (weights, out bool, err error) {
	if p.tensor < 2 || l.Block == 0 {
		return false, false, nil
	}
	part := p.values[from[0]].part
	switch {
	case l.Bits == 32 && len(l.Params) > 0:
		return false, false, errAt(i, l, "is an adapter; how adapters are split over GPUs is not known here, leave tp away")
	case l.Type == models.Linear:
		return true, !part, nil
	case l.Type == models.Attention && !p.allParts(from):
		return false, false, errAt(i, l, "is not split by heads; tp is not known for this network")
	}
	return false, part, nil
}

func (p *planner) allParts(from []int32) bool {
	return !slices.ContainsFunc(from, func(v int32) bool { return !p.values[v].part })
}

// undivided returns an error if tp:N splits no layer of the network.
func (p *planner) undivided() error {
	if p.tensor < 2 || slices.ContainsFunc(p.values, func(v value) bool { return v.part }) {
		return nil
	}
	return &models.Error{Field: "train.parallel", What: "tp splits the linear layers of blocks, and this network has none"}
}

// parted returns each GPU's part of n numbers.
func (p *planner) parted(n int64) int64 { return (n + p.tensor - 1) / p.tensor }
