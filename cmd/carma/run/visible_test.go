package run

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestVisibleNotes: a user who chooses GPUs by NVIDIA_VISIBLE_DEVICES, as under docker, gets a
// hint how to do it with carma.
func TestVisibleNotes(t *testing.T) {
	for flags, want := range map[string]string{
		"-e NVIDIA_VISIBLE_DEVICES=1":      "carma sets it to the task's GPUs",
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

// TestNotes: a flag that replaces another value, and a mode of a mount that has no effect, give
// a note.
func TestNotes(t *testing.T) {
	for flags, want := range map[string]string{
		"--gpus 1 --gpus 2":              "--gpus comes twice: 2 counts, 1 does not",
		"--gpus 2 --gpus 2":              "",
		"--mem 1G --mem 2G":              "--mem comes twice: 2G counts, 1G does not",
		"--tmpfs /a --tmpfs /b":          "",
		"-v .:/d:z":                      "-v .:/d:z: not honoured: files get no new SELinux label",
		"-v .:/d:ro,Z":                   "-v .:/d:ro,Z: not honoured: files get no new SELinux label",
		"-v .:/d:ro -v .:/e":             "",
		"--command-check off --ipc host": "",
	} {
		o, cmd := options{}, &cobra.Command{}
		o.flags(cmd)
		if err := cmd.ParseFlags(strings.Fields(flags)); err != nil {
			t.Fatal(err)
		}
		if _, err := o.submit([]string{"img"}); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(o.notes, "\n"); got != want {
			t.Errorf("%s: %q, want %q", flags, got, want)
		}
	}
}
