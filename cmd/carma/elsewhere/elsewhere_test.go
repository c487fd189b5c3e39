package elsewhere

import (
	"strings"
	"testing"
)

// TestCommandTasks: the advice names the tasks that were typed. An argument that is no
// number leaves the example as it is.
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
