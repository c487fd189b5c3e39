package ledger

import (
	"math"

	"carma/internal/units"
	"carma/mapper/model"
)

// LeastShare is charged for any task, however little memory it is granted, because it
// loads the SMs all the same.
const LeastShare = model.WholeGPU / 16

// ShareOn returns the part of a GPU that a task is charged for: its part of the memory,
// or all if it is exclusive. It is not 1/n for n residents: the charge would change as
// others come and go, and the first task on an idle GPU would pay for room that others
// may use. Without a grant, its estimated need counts.
func ShareOn(g *model.GPU, r *model.Resident, need units.Bytes) int64 {
	if r.Exclusive || g.Capacity <= 0 {
		return model.WholeGPU
	}
	part := float64(max(r.Grant, need)) / float64(g.Capacity)
	return max(LeastShare, int64(math.Round(model.WholeGPU*min(1, part))))
}

// FillShares sets the shares missing in snapshots of versions without shares.
func (in *inventory) FillShares() {
	for _, g := range in.gpus {
		for i := range g.Residents {
			if r := &g.Residents[i]; r.Share <= 0 || r.Share > model.WholeGPU {
				r.Share = ShareOn(g, r, 0)
			}
		}
	}
}
