package step

import (
	"slices"

	"carma/configs/models"
)

// Sequence parallelism follows DeepSpeed-Ulysses (arXiv 2309.14509) and ring attention
// (arXiv 2310.01889). Each GPU has an equal part of every sample's tokens, and all
// weights or its own shard of the weights. For attention, Ulysses redistributes the
// activations, so that each GPU has all tokens of a part of the heads. So all memory that
// depends on samples is divided by the number of GPUs. Buffers of the exchange are not
// counted.

// spread returns each GPU's part of n numbers of samples.
func (p *planner) spread(n int64) int64 { return (n + p.tokens - 1) / p.tokens }

// samples returns the number of samples on a GPU. A part of a sample counts as a
// fraction.
func (p *planner) samples() float64 { return float64(p.batch) / float64(p.tokens) }

// unspread returns an error for a network without attention, because such a network has no
// tokens or processes them one after the other.
func (p *planner) unspread() error {
	if p.tokens < 2 || slices.ContainsFunc(p.config.Layers, func(l models.Layer) bool { return l.Type == models.Attention }) {
		return nil
	}
	return &models.Error{Field: "train.sequence_parallel", What: "it spreads the tokens of networks with attention, and this network has none"}
}
