package step

import (
	"slices"

	"carma/configs/models"
)

// Tensor parallelism (tp:N) as Megatron-LM has it (arXiv 1909.08053, section 3) and
// PyTorch's ColwiseParallel and RowwiseParallel: within a block, a linear layer that
// takes whole tokens is split by columns, so that each GPU has a part of its output; one
// that takes such a part is split by rows, and its output is added up, so it is whole.
// Operations between them work on parts; attention has a part of the heads. Norms,
// residual sums, tables and the head are on each GPU as a whole.

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

// undivided is the error for a network that tp:N divides nothing of.
func (p *planner) undivided() error {
	if p.tensor < 2 || slices.ContainsFunc(p.values, func(v value) bool { return v.part }) {
		return nil
	}
	return &models.Error{Field: "train.parallel", What: "tp splits the linear layers of blocks, and this network has none"}
}

// parted returns each GPU's part of n numbers.
func (p *planner) parted(n int64) int64 { return (n + p.tensor - 1) / p.tensor }
