package api

import "time"

// Progress is the progress of a running attempt, its speed, and its expected end. Counts
// come from its output and are not verified.
type Progress struct {
	// Done and Total count Unit over the whole run. Total is 0 if the output does not
	// contain it.
	Done  float64 `json:"done,omitempty"`
	Total float64 `json:"total,omitempty"`
	Unit  string  `json:"unit,omitempty" doc:"steps, images, samples, tokens, epochs or percent"`
	// Epoch is the present epoch, from 1. Epochs is their total number.
	Epoch  float64 `json:"epoch,omitempty"`
	Epochs float64 `json:"epochs,omitempty"`
	Share  float64 `json:"share,omitempty" doc:"share of the work that is done, 0 to 1; 0: not known"`
	// Rate is the recent speed, with its relative standard error.
	Rate      float64 `json:"rate,omitempty" doc:"units per second of the daemon's time, pauses left out"`
	RateError float64 `json:"rate_error,omitempty" doc:"relative standard error of the rate"`
	// Throughput is the number printed by the program, in PerSecond per second.
	Throughput float64   `json:"throughput,omitempty"`
	PerSecond  string    `json:"per_second,omitempty"`
	Seen       time.Time `json:"seen,omitzero" doc:"when the count rose last"`
	// Doubt is the reason why the count is not reliable, or empty if it is.
	Doubt  string `json:"doubt,omitempty" doc:"why the rate is not relied on: few lines, irregular, silent; why there is no share: perhaps one epoch of several, perhaps one run of several, perhaps one epoch more, past its end"`
	Source string `json:"source" doc:"the form of the lines that tell it: tqdm, trainer, lightning, keras, ...; prediction where its output tells nothing; private where the caller may not read the output"`
	// ETA is the expected end of the attempt, with its present neighbours.
	ETA      time.Time `json:"eta,omitzero" doc:"when it is expected to end"`
	ETABasis string    `json:"eta_basis,omitempty" enum:"output,prediction" doc:"output: by what it prints; prediction: by earlier runs or its model"`
	// Slowdown is the cost of its neighbours, or nil if it has none.
	Slowdown *Slowdown `json:"slowdown,omitempty"`
}

// Slowdown is a task's time with its neighbours divided by its time alone.
type Slowdown struct {
	Value float64 `json:"value" doc:"how many times as long as alone it takes"`
	Basis string  `json:"basis" enum:"measured,predicted"`
	// Error is the standard error of a measured value.
	Error     float64 `json:"error,omitempty"`
	Predicted float64 `json:"predicted" doc:"the value by prediction"`
	// Beside lists the tasks on its GPUs.
	Beside []TaskRef `json:"beside"`
}

// TaskRef names a task.
type TaskRef struct {
	ID   int64  `json:"id"`
	Name string `json:"name"`
}

// Start is the expected start of a pending task, given the running tasks, and provided
// that nobody submits a task that goes first.
type Start struct {
	Earliest time.Time `json:"earliest"`
	// Latest is the expected start if tasks take longer than expected.
	Latest time.Time `json:"latest,omitzero" doc:"zero: not within a day"`
}

// Energy is the energy used by the GPUs, in joules. Time without a daemon counts if the
// same tasks ran all that time.
type Energy struct {
	Since  time.Time          `json:"since" doc:"when it began to be counted"`
	TasksJ float64            `json:"tasks_j" doc:"joules of all tasks, of removed ones too"`
	IdleJ  float64            `json:"idle_j" doc:"joules of GPUs without tasks"`
	Users  map[string]float64 `json:"users" doc:"joules of each user's tasks"`
}
