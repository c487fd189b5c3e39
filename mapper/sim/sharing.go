package sim

import (
	"fmt"
	"slices"
)

// Sharing is how processes share a GPU.
type Sharing int

const (
	// MPS runs the kernels of several processes at once (NVIDIA's Multi-Process
	// Service): the fitted [Model].
	MPS Sharing = iota
	// TimeSlicing is without MPS: a GPU executes the kernels of one process at
	// a time, and processes take turns.
	TimeSlicing
)

var sharingNames = []string{MPS: "mps", TimeSlicing: "time-slicing"}

// SharingNames lists the ways to share, the default first.
func SharingNames() []string { return slices.Clone(sharingNames) }

// ParseSharing is the inverse of String.
func ParseSharing(name string) (Sharing, error) {
	if i := slices.Index(sharingNames, name); i >= 0 {
		return Sharing(i), nil
	}
	return 0, fmt.Errorf("unknown sharing %q; there are %s and %s", name, MPS, TimeSlicing)
}

func (s Sharing) String() string {
	if s < 0 || int(s) >= len(sharingNames) {
		return fmt.Sprintf("sharing %d", int(s))
	}
	return sharingNames[s]
}

// Speeds is the function of that name under this way of sharing.
func (s Sharing) Speeds(loads []Load) []float64 { return s.speeds(Fitted, loads) }

func (s Sharing) speeds(m Model, loads []Load) []float64 {
	speeds := m.Speeds(loads)
	if s == TimeSlicing && len(loads) > 1 {
		takeTurns(loads, speeds)
	}
	return speeds
}

// switchCost is the share of the time that is lost between turns where tasks
// want more than there is. Measured on an H100: two tasks that keep it busy go
// at 0.445 to 0.454 each (docs/hardware).
const switchCost = 0.10

// takeTurns turns speeds under MPS into those under time-slicing:
//
//	speed(i) = min(1, turn/Busy(i))  with  Σ Busy(i)·speed(i) = 1 - switchCost
//
// Tasks that are not busy for longer than there is time fill each other's gaps,
// as under MPS. Beyond that turns are of equal length: who needs less than a
// turn is not held back, the others get equally much GPU time, whatever they
// would leave each other under MPS: a task with small kernels may be faster than
// there. How long a short kernel waits for another's turn to end is not counted.
func takeTurns(loads []Load, speeds []float64) {
	var space [16]float64
	wanted := space[:0] // GPU time
	for _, l := range loads {
		wanted = append(wanted, l.Busy())
	}
	slices.Sort(wanted)
	left := 1 - switchCost
	for i, w := range wanted {
		turn := left / float64(len(wanted)-i)
		if w > turn {
			for j, l := range loads {
				speeds[j] = min(1, turn/l.Busy())
			}
			return
		}
		left -= w
	}
}
