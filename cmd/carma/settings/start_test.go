package settings

import (
	"testing"

	"github.com/spf13/pflag"
)

// TestFlagsAreCheap limits the allocations when the flags of all commands are made, which
// happens at each start. Each key has a few allocations. An earlier version computed the
// defaults per key and policy, and took 23 allocations per key.
func TestFlagsAreCheap(t *testing.T) {
	add := func() { AddFlags(pflag.NewFlagSet("", pflag.ContinueOnError)) }
	add()
	const most = 8 // allocations per key; 2.5 when this was written
	if got := testing.AllocsPerRun(5, add) / float64(len(keys)); got > most {
		t.Errorf("%.1f allocations a key, at most %d", got, most)
	} else {
		t.Logf("%.1f allocations a key", got)
	}
}
