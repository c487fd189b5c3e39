package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"carma/configs/workloads"
	"carma/runner/gpu/simgpu/client"
	"carma/runner/gpu/simgpu/wire"
)

// calibrate simulates the program of carma doctor --calibrate: it allocates a context on
// its first simulated GPU, and prints the memory that the server reports. The other
// figures come from the default environment.
func calibrate(ctx context.Context, env func(string) string, stdout, stderr io.Writer, window time.Duration) int {
	c, err := connect(ctx, job{loads: make([]wire.Load, 1)}, env, window)
	if err != nil {
		fmt.Fprintf(stderr, "simtask: %v\n", err)
		return exitNoGPU
	}
	defer c.Close()
	if err := c.Alloc(ctx, 0, workloads.Context("")); err != nil {
		fmt.Fprintf(stderr, "simtask: %v\n", err)
		return exitFailed
	}
	return printFigures(stdout, c)
}

// figures contains the figures of a simulated GPU, in bytes.
type figures struct {
	Context int64  `json:"context"`
	CuDNN   int64  `json:"cudnn"`
	CuBLAS  int64  `json:"cublas"`
	Torch   string `json:"torch"`
	CUDA    string `json:"cuda"`
}

func printFigures(stdout io.Writer, c *client.Client) int {
	text, err := json.Marshal(figures{Context: int64(c.Held(0)), CuBLAS: 8_519_680, Torch: "simulated", CUDA: "simulated"})
	if err != nil {
		return exitFailed
	}
	fmt.Fprintf(stdout, "carma-calibrate %s\n", text)
	return exitOK
}
