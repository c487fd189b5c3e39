// Package sim replays tasks in virtual time on modelled GPUs.
package sim

import "carma/mapper/interference"

// Load is the activity of one task on a GPU when it runs there alone.
type Load = interference.Load

// Model is the interference model.
type Model = interference.Model

// Fitted is the model that a replay uses.
var Fitted = interference.Fitted

// Speeds returns the speed of each of several tasks on one GPU relative to
// being alone there.
func Speeds(loads []Load) []float64 { return interference.Speeds(loads) }
