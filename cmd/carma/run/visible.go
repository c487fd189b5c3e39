package run

import (
	"fmt"
	"strconv"
	"strings"
)

// visibleNotes are lines about variables that choose GPUs under docker: carma sets the
// one, and the other counts the task's own GPUs, of which there are so many; 0: it is not
// known how many.
func visibleNotes(env []string, gpus int) (notes []string) {
	for _, variable := range env {
		key, value, _ := strings.Cut(variable, "=")
		switch {
		case value == "":
		case key == "NVIDIA_VISIBLE_DEVICES":
			notes = append(notes, "-e "+variable+": carma sets it to the task's GPUs; --gpus 2 says how many, --gpus device=0,1 which")
		case key == "CUDA_VISIBLE_DEVICES" && beyond(value, max(gpus, 1)):
			notes = append(notes, fmt.Sprintf("-e %s: it counts the task's own GPUs, from 0; leave it out, and --gpus device=%s says which of the machine's", variable, value))
		}
	}
	return notes
}

// beyond reports whether a list of GPUs names one that a task with so many has not.
func beyond(list string, gpus int) bool {
	for name := range strings.SplitSeq(list, ",") {
		if i, err := strconv.Atoi(strings.TrimSpace(name)); err != nil || i >= gpus {
			return true
		}
	}
	return false
}
