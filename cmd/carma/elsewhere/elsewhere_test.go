package elsewhere

import (
	"strings"
	"testing"
)

// TestCommandTasks checks that the hint contains the task numbers of the command line, and that
// the example is not changed by an argument that is not a number.
func TestCommandTasks(t *testing.T) {
	for line, want := range map[string]string{
		"scontrol hold 4":        "carma hold 4",
		"scontrol hold 4 5":      "carma hold 4 5",
		"scontrol hold":          "carma hold 20",
		"scontrol hold 4 -x":     "carma hold 20",
		"scontrol requeuehold 9": "carma requeue --hold 9",
		"kill 3":                 "carma stop --now 3",
		"log 99999999999":        "carma logs 12",
	} {
		w, is := Command(strings.Fields(line))
		if !is || w.Write != want {
			t.Errorf("%s: %q, want %q", line, w.Write, want)
		}
	}
}
