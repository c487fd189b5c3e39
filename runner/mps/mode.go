package mps

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// ComputeModes are the GPU compute modes in which MPS works. In exclusive-process only
// the server may use the GPU. A task that cannot reach the server then fails at once, and
// two groups exclude each other on one GPU.
var ComputeModes = []string{"default", "exclusive-process"}

// SetComputeMode sets the compute mode of GPUs. smi is the path of nvidia-smi; empty
// means the one in PATH. Only an administrator may do so.
func SetComputeMode(ctx context.Context, smi string, gpus []string, mode string) error {
	if smi == "" {
		smi = "nvidia-smi"
	}
	word := strings.ToUpper(strings.ReplaceAll(mode, "-", "_"))
	for _, gpu := range gpus {
		ctx, cancel := context.WithTimeout(ctx, answerLimit)
		out, err := output(exec.CommandContext(ctx, smi, "-i", gpu, "-c", word))
		cancel()
		if err != nil {
			return fmt.Errorf("%s -i %s -c %s: %s", smi, gpu, word, brief(out, err))
		}
	}
	return nil
}

// brief returns the reason of a tool's failure, in one line.
func brief(out string, err error) string {
	if text := strings.Join(strings.Fields(out), " "); text != "" {
		return text
	}
	return err.Error()
}
