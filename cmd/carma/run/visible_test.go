package run

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestVisibleNotes: who chooses GPUs by NVIDIA_VISIBLE_DEVICES, as under docker, is told
// how it is done here.
func TestVisibleNotes(t *testing.T) {
	for flags, want := range map[string]string{
		"-e NVIDIA_VISIBLE_DEVICES=1":            "carma sets it to the task's GPUs",
		"-e CUDA_VISIBLE_DEVICES=2 -e A=3": "",
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
