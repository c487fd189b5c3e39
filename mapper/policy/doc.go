// Package policy holds the policies: the rules by which a task gets its GPUs among those
// that pass the preconditions of every policy. A policy is a value of type Policy. It
// reads the state through a View and changes nothing. To add one, write a file in this
// package that appends it to the table.
package policy

import (
	"carma/internal/units"
	"carma/mapper/model"
)

// View gives a policy read access to the state during one call. Tasks and GPUs are those
// of the state: a policy must not change them.
type View interface {
	// FreeMemory returns the memory of a GPU that a new task may take.
	FreeMemory(g *model.GPU) units.Bytes
	// RingDistance returns the distance of a GPU from the one after the latest
	// placement, in ledger order.
	RingDistance(g *model.GPU) int

	// ClosedTo returns a task on a GPU beside which nothing can be predicted for t, because
	// its load or speed is not known yet, or 0.
	ClosedTo(t *model.Task, g *model.GPU) model.TaskID
	// Candidates returns the candidate numbers of a task, one for each of its GPUs.
	// Equal loads and run times have equal numbers. They are valid during the call.
	Candidates(t *model.Task) []int
	// SlowdownRule returns the rule by which the prediction refuses a candidate on a
	// GPU, or "".
	SlowdownRule(g *model.GPU, candidate int) model.Rule
	// Added returns the seconds that a candidate is predicted to add to the sum of all
	// completion times on a GPU, and the rule by which it is refused there, or "".
	Added(g *model.GPU, candidate int) (seconds float64, rule model.Rule)
}
