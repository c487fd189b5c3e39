package api

import (
	"strconv"
	"strings"
	"testing"
)

// TestParseGPUs: other tools' syntax is read if its meaning is clear, else the error says
// what to write.
func TestParseGPUs(t *testing.T) {
	for text, want := range map[string]string{
		"2": "2", "all": "-1", "-1": "-1", "0": "0", "count=2": "2", `"device=0,1"`: "0 1", "device=GPU-a": "GPU-a", "GPU-8f1e,GPU-8f1f": "GPU-8f1e GPU-8f1f", "MIG-1": "MIG-1",
		`"device=0,1","capabilities=compute,utility"`: "0 1",
		"0,1": "write device=0,1 for these GPUs, or 2 for so many", "0.5": "write 1, and its part as --mem", ".5": "write 1, and its part",
		"a100:2": "carma does not choose GPUs by their model; write 2,", "gpu:a100:4": "write 4,", "gpu:2": "write 2,", "h100x4": "write 4,", "A100": "write 1,", "RTX4090": "write 1,", "h100=2": "write 2,",
		"nvidia.com/gpu=0": "write device=0", "nvidia.com/gpu=all": "write all", "none": "write 0", "two": "is not a whole number from 0 on", "ids=0": "unknown key",
	} {
		g, err := ParseGPUs(text)
		got := strings.Join(g.Devices, " ")
		if got == "" {
			got = strconv.FormatInt(g.Count, 10)
		}
		if err != nil {
			got = err.Error()
		}
		if err == nil && got != want || err != nil && !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
