package api

import "context"

// Scores say how well memory was estimated for finished tasks: the caller's, or
// everybody's if the caller is an admin.
type Scores struct {
	// Everybody: they are of the tasks of all users.
	Everybody bool    `json:"everybody"`
	Families  []Score `json:"families"`
	// Unscored counts the finished tasks in no family: they did not end well, ran too short,
	// had whole GPUs, or took most of a card at their start.
	Unscored int `json:"unscored"`
}

// Score is about one family of estimates. Errors are relative to the highest memory
// seen.
type Score struct {
	Family string `json:"family" doc:"method, family of networks and environment of the estimates"`
	Tasks  int    `json:"tasks"`
	// Median is the median of |point estimate / measured - 1|, or -1 if there is none.
	Median float64 `json:"median_error"`
	// Above is the share of tasks that used more than was allocated from the estimate,
	// Overhead the mean of allocated / measured - 1.
	Above    float64 `json:"above_bound"`
	Overhead float64 `json:"bound_overhead"`
	// The same of the estimates before earlier runs corrected them. PlainTasks is the number
	// of tasks with such an estimate.
	PlainTasks    int     `json:"plain_tasks"`
	PlainMedian   float64 `json:"plain_median_error"`
	PlainAbove    float64 `json:"plain_above_bound"`
	PlainOverhead float64 `json:"plain_bound_overhead"`
}

// Scores returns how well memory was estimated for finished tasks.
func (c *Client) Scores(ctx context.Context) (Scores, error) { return GetScores.send(ctx, c, None{}) }
