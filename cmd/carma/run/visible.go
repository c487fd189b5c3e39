package run

import "strings"

// visibleNotes returns lines about the variable that selects GPUs in docker, which carma
// sets itself. The daemon checks CUDA_VISIBLE_DEVICES.
func visibleNotes(env []string) (notes []string) {
	for _, variable := range env {
		key, value, _ := strings.Cut(variable, "=")
		switch {
		case value == "":
		case key == "NVIDIA_VISIBLE_DEVICES":
			notes = append(notes, "-e "+variable+": carma sets it to the task's GPUs; --gpus 2 says how many, --gpus device=0,1 which")
		}
	}
	return notes
}
