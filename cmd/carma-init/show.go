package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// show prints the environment, as lines "env KEY=value", and the output of nvidia-smi
// about the GPUs, if the container has it: "gpu UUID, MiB", or "smi" with the reason.
func show(w io.Writer) int {
	for _, kv := range os.Environ() {
		fmt.Fprintf(w, "env %s\n", strings.ReplaceAll(kv, "\n", " "))
	}
	out, err := exec.Command("nvidia-smi", "--query-gpu=uuid,memory.total", "--format=csv,noheader,nounits").CombinedOutput()
	if err != nil {
		fmt.Fprintf(w, "smi %v %s\n", err, strings.Join(strings.Fields(string(out)), " "))
		return 0
	}
	for line := range strings.Lines(string(out)) {
		fmt.Fprintf(w, "gpu %s\n", strings.TrimSpace(line))
	}
	return 0
}
