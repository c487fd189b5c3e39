package estimator

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"carma/internal/units"
)

// OtherBatches is the method of an estimate from runs of the same program at
// other batch sizes.
const OtherBatches = "other-batches"

// Run is an earlier run of the same program: its batch size and its peak on one
// GPU.
type Run struct {
	Batch int
	Peak  units.Bytes
}

const (
	// grows is the assumed fraction of a training's memory that grows with the batch. A
	// doubling of the batch added 0.76 (median of the real models of estimates.csv) or
	// 0.58 (timm's models) of the measured memory.
	grows = 0.7
	// A line through two runs has an error below lineSpread plus lineSpreadFar for each
	// doubling outside the range of the runs, in nineteen of twenty cases of both sets.
	lineSpread    = 0.045
	lineSpreadFar = 0.025
)

// FromRuns estimates a program at a batch size only from its runs at other batch sizes.
// ok is false if there are none. It assumes that memory is a fixed part plus a part in
// proportion to the batch. Two runs determine both parts. After one run the bound is its
// peak for a smaller batch, and in proportion for a larger one. far is the distance of
// batch from the range of the runs' batch sizes, in doublings.
func FromRuns(batch int, runs []Run) (e Estimate, far float64, ok bool) {
	runs = usable(runs)
	if len(runs) == 0 || batch <= 0 {
		return Estimate{}, 0, false
	}
	least, most := runs[0].Batch, runs[len(runs)-1].Batch
	far = max(0, math.Log2(float64(batch)/float64(most)), math.Log2(float64(least)/float64(batch)))
	point, upper := fromOne(float64(batch), runs[0])
	detail := fmt.Sprintf("runs at batch size %d used %s", runs[0].Batch, runs[0].Peak)
	if len(runs) > 1 {
		a, b := around(batch, runs)
		point, upper = fromTwo(float64(batch), a, b)
		detail = fmt.Sprintf("runs at batch sizes %d and %d used %s and %s", a.Batch, b.Batch, a.Peak, b.Peak)
	}
	e = Estimate{Point: bytesOf(point), Memory: bytesOf(upper), Method: OtherBatches}
	e.Detail = fmt.Sprintf("%s, so %s at %d; %s booked", detail, e.Point, batch, e.Memory)
	return e, far, true
}

// usable sorts runs by batch size and keeps the highest peak of each size.
func usable(runs []Run) []Run {
	runs = slices.DeleteFunc(slices.Clone(runs), func(r Run) bool { return r.Batch <= 0 || r.Peak <= 0 })
	slices.SortFunc(runs, func(a, b Run) int { return cmp.Or(cmp.Compare(a.Batch, b.Batch), cmp.Compare(b.Peak, a.Peak)) })
	return slices.CompactFunc(runs, func(a, b Run) bool { return a.Batch == b.Batch })
}

// Nearest returns the run whose batch size is nearest by ratio, the larger of two equally
// near ones. It returns false if there are no runs.
func Nearest(batch int, runs []Run) (r Run, ok bool) {
	runs = usable(runs)
	if len(runs) == 0 || batch <= 0 {
		return Run{}, false
	}
	return slices.MinFunc(runs, func(a, b Run) int {
		return cmp.Or(cmp.Compare(doublings(batch, a.Batch), doublings(batch, b.Batch)), cmp.Compare(b.Batch, a.Batch))
	}), true
}

// around returns the two runs that define the line: the nearest run on each side of batch,
// or the two nearest runs if all are on one side. runs must have at least two entries.
func around(batch int, runs []Run) (a, b Run) {
	i, _ := slices.BinarySearchFunc(runs, batch, func(r Run, batch int) int { return cmp.Compare(r.Batch, batch) })
	i = min(max(i, 1), len(runs)-1)
	return runs[i-1], runs[i]
}

func fromOne(batch float64, r Run) (point, upper float64) {
	peak, ratio := float64(r.Peak), batch/float64(r.Batch)
	return peak * (1 + grows*(ratio-1)), peak * max(1, ratio)
}

func fromTwo(batch float64, a, b Run) (point, upper float64) {
	slope := max(0, float64(b.Peak-a.Peak)/float64(b.Batch-a.Batch))
	point = max(float64(b.Peak)+slope*(batch-float64(b.Batch)), 0)
	outside := max(0, math.Log2(batch/float64(b.Batch)), math.Log2(float64(a.Batch)/batch))
	return point, point * math.Exp(lineSpread+lineSpreadFar*outside)
}

// doublings returns the distance of two batch sizes in doublings.
func doublings(a, b int) float64 { return math.Abs(math.Log2(float64(a) / float64(b))) }

// bytesOf converts x to bytes, without overflow.
func bytesOf(x float64) units.Bytes { return units.Bytes(min(max(x, 0), 1<<60)) }
