package runner

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// frugalFrom is the memory from which on garbage is collected sooner than Go
	// would: below it, room is cheaper than work.
	frugalFrom = 96 << 20
	// frugalEvery is the time between two looks at it.
	frugalEvery = time.Second
)

// frugal bounds what garbage adds to the daemon's memory until ctx ends. By
// itself Go lets the heap grow to twice of what is in use; above frugalFrom this
// makes it a quarter more. The bound follows what is in use, so that a daemon
// with very many tasks does not collect garbage all the time.
func frugal(ctx context.Context) {
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	tick := time.NewTicker(frugalEvery)
	defer tick.Stop()
	for {
		debug.SetMemoryLimit(min(before, memoryLimit(inUse())))
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// memoryLimit is what all of Go's memory may come to, when some is in use.
func memoryLimit(live, beside int64) int64 {
	return max(frugalFrom, live+live/4+beside+frugalFrom/4)
}

// inUse is the heap that the last collection found in use, and what Go has
// beside the heap.
func inUse() (live, beside int64) {
	s := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/free:bytes"}, {Name: "/memory/classes/heap/unused:bytes"},
	}
	metrics.Read(s)
	n := func(i int) int64 { return int64(s[i].Value.Uint64()) }
	return n(0), max(0, n(1)-n(2)-n(3)-n(4)-n(5))
}
