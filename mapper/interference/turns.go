package interference

import "slices"

// switchCost is the share of time lost between turns if the tasks need more time than
// there is. Measured on an H100: two tasks that each keep it busy run at speeds of 0.445
// to 0.454 (docs/hardware).
const switchCost = 0.10

// TakeTurns converts speeds under MPS into the speeds without MPS, where a GPU executes
// the kernels of one process at a time and processes take turns. busy is [Load.Busy] of
// each task:
//
//	speed(i) = min(1, turn/busy(i))  with  Σ busy(i)·speed(i) = 1 - switchCost
//
// Tasks that together need at most the whole time fill each other's gaps, as under MPS.
// Otherwise turns have equal length: a task that needs less than a turn is not slowed
// down, and the other tasks get equal GPU time. So a task with small kernels may be
// faster than under MPS. The wait of a short kernel for the end of another task's turn is
// not modelled. TakeTurns reports whether the tasks take turns; if not, it leaves the
// speeds unchanged.
func TakeTurns(busy, speeds []float64) bool {
	var space [16]float64
	wanted := append(space[:0], busy...)
	slices.Sort(wanted)
	left := 1 - switchCost
	for i, w := range wanted {
		turn := left / float64(len(wanted)-i)
		if w > turn {
			for j := range busy {
				speeds[j] = min(1, turn/busy[j])
			}
			return true
		}
		left -= w
	}
	return false
}
