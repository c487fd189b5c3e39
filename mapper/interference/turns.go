package interference

import "slices"

// switchCost is the share of the time that is lost between turns where tasks
// want more than there is. Measured on an H100: two tasks that keep it busy go
// at 0.445 to 0.454 each (docs/hardware).
const switchCost = 0.10

// TakeTurns turns speeds under MPS into those without MPS, where a GPU executes
// the kernels of one process at a time and processes take turns. busy is
// [Load.Busy] of each task:
//
//	speed(i) = min(1, turn/busy(i))  with  Σ busy(i)·speed(i) = 1 - switchCost
//
// Tasks that are not busy for longer than there is time fill each other's gaps,
// as under MPS. Beyond that turns are of equal length: a task that needs less
// than a turn is not held back, the others get equally much GPU time, whatever
// they would leave each other under MPS. So a task with small kernels may be
// faster than there. How long a short kernel waits for the end of another's turn
// is not counted. It reports whether they take turns; else speeds stay.
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
