package model

import (
	"cmp"
	"slices"

	"carma/internal/units"
)

// SuspendKind is the way in which tasks on a GPU can be suspended.
type SuspendKind string

// The kinds of suspending.
const (
	SuspendNever SuspendKind = ""
	SuspendHere  SuspendKind = "here" // it resumes on the same GPU
	SuspendMove  SuspendKind = "move" // or on another of the same kind
)

// Suspension is the state of a task that is suspending, suspended or resuming.
type Suspension struct {
	By  string `json:"by,omitempty"`
	Why string `json:"why,omitempty"`
	// Reason is the reason why carma suspended it, or zero if a user requested it.
	Reason Reason `json:"reason,omitzero"`
	// Since is the instant at which it left its GPUs, or 0 before.
	Since units.Instant `json:"since,omitempty"`
	// From holds its grants before, Host the host memory allocated for its GPU memory.
	From []Grant     `json:"from,omitempty"`
	Host units.Bytes `json:"host,omitempty"`
	// InPlace: its program is asked to vacate its GPUs, and resumes only on these GPUs.
	InPlace bool `json:"left,omitempty"`
	// Lent is the part of its host memory that others may use meanwhile.
	Lent units.Bytes `json:"lent,omitempty"`
	// Automatic: it resumes when there is room. Otherwise it waits for ResumeAsked.
	Automatic bool `json:"back,omitempty"`
	// Failures counts how often it could not resume.
	Failures int `json:"failures,omitempty"`
}

// Preemptor returns the task for which a task is suspended, or 0.
func (a *Suspension) Preemptor() TaskID {
	switch a.Reason.Code {
	case ReasonMadeWay, ReasonSwapped, ReasonFilled:
		return a.Reason.Task
	}
	return 0
}

// Includes reports whether a suspended task had a GPU.
func (a *Suspension) Includes(id GPUID) bool {
	return slices.ContainsFunc(a.From, func(g Grant) bool { return g.GPU == id })
}

// GPUs returns the GPUs that a suspended task had.
func (a *Suspension) GPUs() []GPUID {
	ids := make([]GPUID, len(a.From))
	for i, grant := range a.From {
		ids[i] = grant.GPU
	}
	return ids
}

// SortAsBefore sorts GPUs into the order in which a suspended task had them.
func (a *Suspension) SortAsBefore(gpus []*GPU) {
	at := func(g *GPU) int {
		return slices.IndexFunc(a.From, func(from Grant) bool { return from.GPU == g.ID })
	}
	slices.SortStableFunc(gpus, func(x, y *GPU) int { return cmp.Compare(at(x), at(y)) })
}

// SuspendedResidue is the memory that a suspended task still holds on a GPU.
type SuspendedResidue struct {
	Task TaskID      `json:"task"`
	Used units.Bytes `json:"used"`
}

// AssumedResidue is the assumed residue of a program that has vacated a GPU, its CUDA
// context, until a sample shows it.
const AssumedResidue = 512 * units.MiB
