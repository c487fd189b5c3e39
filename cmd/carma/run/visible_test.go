package run

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestVisibleNotes: who chooses GPUs by variables, as under docker, is told how it is
// done here; -1 is a hidden GPU for CUDA.
func TestVisibleNotes(t *testing.T) {
	for flags, want := range map[string]string{
		"-e CUDA_VISIBLE_DEVICES=2":              "--gpus device=2 says which",
		"-e CUDA_VISIBLE_DEVICES=0":              "",
		"-e CUDA_VISIBLE_DEVICES=":               "",
		"-e CUDA_VISIBLE_DEVICES=-1":             "",
		"--gpus 2 -e CUDA_VISIBLE_DEVICES=0,1":   "",
		"--gpus 2 -e CUDA_VISIBLE_DEVICES=2,3":   "--gpus device=2,3 says which",
		"--gpus all -e CUDA_VISIBLE_DEVICES=3":   "",
		"-e CUDA_VISIBLE_DEVICES=GPU-12":         "--gpus device=GPU-12 says which",
		"-e NVIDIA_VISIBLE_DEVICES=1":            "carma sets it to the task's GPUs",
		"-e CUDA_DEVICE_ORDER=PCI_BUS_ID -e A=3": "",
	} {
		o, cmd := options{}, &cobra.Command{}
		o.flags(cmd)
		if err := cmd.ParseFlags(strings.Fields(flags)); err != nil {
			t.Fatal(err)
		}
		if _, err := o.submit([]string{"img"}); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(o.notes, "\n"); !strings.Contains(got, want) || (got == "") != (want == "") {
			t.Errorf("%s: %q, want %q", flags, got, want)
		}
	}
}
