//go:build kubernetes

package test

import (
	"fmt"
	"os"
	"testing"
)

// mostMemory is the largest memory of a daemon and an agent together, in bytes.
const mostMemory = 150e6

// small checks the memory of processes, as ps shows it. ps counts pages of a program's file
// once for each process.
func small(t *testing.T, all ...*process) {
	t.Helper()
	sum := 0
	for _, p := range all {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", p.cmd.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		var size, resident int
		if _, err := fmt.Sscan(string(text), &size, &resident); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		sum += resident * os.Getpagesize()
		t.Logf("carma %s has %.1f MB of memory", p.args[1], float64(resident*os.Getpagesize())/1e6)
	}
	if sum >= mostMemory {
		t.Errorf("together they have %.1f MB, at most %.0f; is carma-agent beside %s, of its version?", float64(sum)/1e6, mostMemory/1e6, carma)
	}
}
