package sim

import (
	"fmt"
	"slices"

	"carma/mapper/interference"
	"carma/mapper/model"
)

// Sharing is the way in which processes share a GPU.
type Sharing int

const (
	// MPS runs the kernels of several processes at once (NVIDIA's Multi-Process
	// Service): the fitted [Model].
	MPS Sharing = iota
	// TimeSlicing works without MPS. A GPU executes the kernels of one process at a time,
	// and processes take turns.
	TimeSlicing
)

var sharingNames = []string{MPS: "mps", TimeSlicing: "time-slicing"}

// SharingNames lists the kinds of sharing, the default first.
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

// told returns the kind of sharing as reported to the scheduler.
func (s Sharing) told() model.Sharing {
	if s == TimeSlicing {
		return model.SharingTurns
	}
	return model.SharingMPS
}

// Speeds returns the same as the function [Speeds], but for this kind of sharing.
func (s Sharing) Speeds(loads []Load) []float64 { return s.speeds(Fitted, loads) }

func (s Sharing) speeds(m Model, loads []Load) []float64 {
	speeds := m.Speeds(loads)
	if s == TimeSlicing && len(loads) > 1 {
		busy := make([]float64, len(loads))
		for i, l := range loads {
			busy[i] = l.Busy()
		}
		interference.TakeTurns(busy, speeds)
	}
	return speeds
}
