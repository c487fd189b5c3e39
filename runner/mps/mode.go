package mps

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// ComputeModes are those in which MPS works. In exclusive-process only the
// server may use the GPU, so that a task which misses it fails at once; two
// groups on one GPU then exclude each other.
var ComputeModes = []string{"default", "exclusive-process"}

// SetComputeMode sets the compute mode of GPUs with nvidia-smi (smi; empty:
// the one in PATH), which takes an administrator.
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

// brief is why a tool failed, in one line.
func brief(out string, err error) string {
	if text := strings.Join(strings.Fields(out), " "); text != "" {
		return text
	}
	return err.Error()
}
