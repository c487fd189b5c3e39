package runner

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// frugalFrom is the memory in bytes from which on garbage is collected sooner than Go
	// would. Below frugalFrom, memory costs less than more frequent collections.
	frugalFrom = 96 << 20
	// frugalEvery is the time between two checks of the memory in use.
	frugalEvery = time.Second
)

// tuneGC bounds the garbage in the daemon's memory until ctx ends. By default
// Go lets the heap grow to twice the memory in use. Above frugalFrom it may
// grow by a quarter only. The bound follows the memory in use, so that a daemon
// with very many tasks does not collect garbage all the time.
func tuneGC(ctx context.Context) {
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

// memoryLimit returns the limit for all of Go's memory in bytes, for live bytes
// in use on the heap and the bytes beside the heap.
func memoryLimit(live, beside int64) int64 {
	return max(frugalFrom, live+live/4+beside+frugalFrom/4)
}

// inUse returns the heap that the last collection found in use, and the memory
// that Go has beside the heap, in bytes.
func inUse() (live, beside int64) {
	s := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/free:bytes"}, {Name: "/memory/classes/heap/unused:bytes"},
	}
	metrics.Read(s)
	n := func(i int) int64 { return int64(s[i].Value.Uint64()) }
	return n(0), max(0, n(1)-n(2)-n(3)-n(4)-n(5))
}
