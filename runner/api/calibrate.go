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
