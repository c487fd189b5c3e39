package api

import "time"

// Progress is how far a running attempt has come, how fast it goes, and when it
// will end. Counts come from its output, which is the task's word.
type Progress struct {
	// Done and Total count Unit through the whole run. Total is 0 if its output
	// does not say it.
	Done  float64 `json:"done,omitempty"`
	Total float64 `json:"total,omitempty"`
	Unit  string  `json:"unit,omitempty" doc:"steps, images, samples, tokens, epochs or percent"`
	// Epoch is the present one, from 1; Epochs how many there will be.
	Epoch  float64 `json:"epoch,omitempty"`
	Epochs float64 `json:"epochs,omitempty"`
	Share  float64 `json:"share,omitempty" doc:"share of the work that is done, 0 to 1; 0: not known"`
	// Rate is the recent speed, with its relative standard error.
	Rate      float64 `json:"rate,omitempty" doc:"units per second of the daemon's time, pauses left out"`
	RateError float64 `json:"rate_error,omitempty" doc:"relative standard error of the rate"`
	// Throughput is what the program printed, in PerSecond per second.
	Throughput float64   `json:"throughput,omitempty"`
	PerSecond  string    `json:"per_second,omitempty"`
	Seen       time.Time `json:"seen,omitzero" doc:"when the count rose last"`
	// Doubt is why the count is not relied on; empty: it is.
	Doubt  string `json:"doubt,omitempty" doc:"why the rate is not relied on: few lines, irregular, silent; why there is no share: perhaps one epoch of several, perhaps one run of several, perhaps one epoch more, past its end"`
	Source string `json:"source" doc:"the form of the lines that tell it: tqdm, trainer, lightning, keras, ...; prediction where its output tells nothing; private where the caller may not read the output"`
	// ETA is when the attempt is expected to end, with the neighbours that it has.
	ETA      time.Time `json:"eta,omitzero" doc:"when it is expected to end"`
	ETABasis string    `json:"eta_basis,omitempty" enum:"output,prediction" doc:"output: by what it prints; prediction: by earlier runs or its model"`
	// Slowdown is what its neighbours cost it; nil: it has none.
	Slowdown *Slowdown `json:"slowdown,omitempty"`
}

// Slowdown is how many times as long as alone a task takes beside its neighbours.
type Slowdown struct {
	Value float64 `json:"value" doc:"how many times as long as alone it takes"`
	Basis string  `json:"basis" enum:"measured,predicted"`
	// Error is the standard error of a measured value.
	Error     float64 `json:"error,omitempty"`
	Predicted float64 `json:"predicted" doc:"the value by prediction"`
	// Beside are the tasks on its GPUs.
	Beside []TaskRef `json:"beside"`
}

// TaskRef names a task.
type TaskRef struct {
	ID   int64  `json:"id"`
	Name string `json:"name"`
}

// Start is when a waiting task is expected to start, as tasks run now and as long
// as nobody submits a task that goes first.
type Start struct {
	Earliest time.Time `json:"earliest"`
	// Latest is the start if tasks take longer, as they may.
	Latest time.Time `json:"latest,omitzero" doc:"zero: not within a day"`
}
