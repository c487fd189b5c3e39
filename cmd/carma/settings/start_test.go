package settings

import (
	"testing"

	"github.com/spf13/pflag"
)

// TestFlagsAreCheap: each start makes the flags of all commands. Each key has a few
// allocations of its own; nothing is computed per key and policy, which took 23
// allocations a key.
func TestFlagsAreCheap(t *testing.T) {
	add := func() { AddFlags(pflag.NewFlagSet("", pflag.ContinueOnError)) }
	add()
	const most = 8 // a key; 2.5 when this was written
	if got := testing.AllocsPerRun(5, add) / float64(len(keys)); got > most {
		t.Errorf("%.1f allocations a key, at most %d", got, most)
	} else {
		t.Logf("%.1f allocations a key", got)
	}
}
