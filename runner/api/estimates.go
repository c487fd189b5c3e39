package api

import "context"

// CalibrateRequest requests a measurement of the machine's own environment.
type CalibrateRequest struct {
	Image string `json:"image" minLength:"1" doc:"an image on this machine with PyTorch; its own program does not run"`
}

// Calibration contains the machine's own environment and the previous one. Memory is in
// bytes.
type Calibration struct {
	GPU       int         `json:"gpu" doc:"index of the GPU that it was measured on"`
	Model     string      `json:"model"`
	Simulated bool        `json:"simulated,omitempty" doc:"the GPU is simulated, and so are the figures"`
	Seconds   float64     `json:"seconds"`
	Now       Environment `json:"now"`
	Before    Environment `json:"before"`
}

// Environment is the GPU memory that a process uses in addition to its tensors.
type Environment struct {
	Name    string `json:"name"`
	About   string `json:"about,omitempty"`
	Context int64  `json:"context" doc:"before its first tensor"`
	CuDNN   int64  `json:"cudnn" doc:"added by the convolution library"`
	CuBLAS  int64  `json:"cublas" doc:"workspace of a handle"`
	NCCL    int64  `json:"nccl,omitempty" doc:"of a communicator of two GPUs, on each; 0: not measured"`
}

// Calibrate measures the GPU memory of a process, and makes the machine's own environment
// from it.
func (c *Client) Calibrate(ctx context.Context, image string) (Calibration, error) {
	return CalibrateGPU.send(ctx, c, With[CalibrateRequest]{CalibrateRequest{Image: image}})
}

// Scores contains the errors of memory estimates for finished tasks: the caller's tasks,
// or everybody's if the caller is an admin.
type Scores struct {
	// Everybody is set if the scores cover the tasks of all users.
	Everybody bool    `json:"everybody"`
	Families  []Score `json:"families"`
	// Unscored counts the finished tasks in no family: they failed, ran too short, had whole
	// GPUs, or took most of a card at their start.
	Unscored int `json:"unscored"`
}

// Score contains the errors of one family of estimates, relative to the highest measured
// memory.
type Score struct {
	Family string `json:"family" doc:"method, family of networks and environment of the estimates"`
	Tasks  int    `json:"tasks"`
	// Median is the median of |point estimate / measured - 1|, or -1 if there is none.
	Median float64 `json:"median_error"`
	// Above is the share of tasks that used more than was allocated from the estimate,
	// Overhead the mean of allocated / measured - 1.
	Above    float64 `json:"above_bound"`
	Overhead float64 `json:"bound_overhead"`
	// The same figures for the estimates before correction by earlier runs. PlainTasks is
	// the number of tasks with such an estimate.
	PlainTasks    int     `json:"plain_tasks"`
	PlainMedian   float64 `json:"plain_median_error"`
	PlainAbove    float64 `json:"plain_above_bound"`
	PlainOverhead float64 `json:"plain_bound_overhead"`
}

// Scores returns the errors of memory estimates for finished tasks.
func (c *Client) Scores(ctx context.Context) (Scores, error) { return GetScores.send(ctx, c, None{}) }
