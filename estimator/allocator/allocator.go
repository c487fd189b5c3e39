package allocator

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
)

// Sizes of the allocator, in bytes.
const (
	granule      = 512
	smallRequest = 1 << 20  // the largest request of the small pool
	smallSegment = 2 << 20  // a segment of the small pool
	largeSegment = 20 << 20 // a segment for requests below 10 MiB
	minSegment   = 10 << 20 // requests of at least this size get their own segment
	roundSegment = 2 << 20  // the size of such a segment is rounded up to a multiple of this
	splitRest    = 1 << 20  // the large pool splits a block only if more than this is left
)

// MaxRequest is the largest request, so that no sum of requests overflows.
const MaxRequest = 1 << 50

// Options contains the settings of PYTORCH_CUDA_ALLOC_CONF and the memory of the GPU. The
// zero value is PyTorch's default on a GPU of unlimited memory.
type Options struct {
	// Limit is the limit of reserved bytes, or 0 for none. Before a request fails, the
	// allocator returns all completely free segments to the driver.
	Limit int64
	// MaxSplit is max_split_size_mb in bytes, or 0 for no bound. Larger blocks are not
	// split, and are not used for much smaller requests.
	MaxSplit int64
	// RoundupDivisions is roundup_power2_divisions: requests are rounded up to one of this
	// many steps between two powers of two. 0 and 1 mean off.
	RoundupDivisions int64
	// Expandable is expandable_segments: one growing segment per pool.
	Expandable bool
	// Async is backend:cudaMallocAsync: the driver's own pool.
	Async bool
}

// ErrOutOfMemory means that a request failed even after the cache was flushed.
var ErrOutOfMemory = errors.New("out of GPU memory")

// Stats contains some figures of torch.cuda.memory_stats, in bytes.
type Stats struct {
	Allocated, PeakAllocated int64
	Reserved, PeakReserved   int64
	// Flushes is the number of times that the allocator returned its cache to the driver
	// to avoid running out of memory.
	Flushes int
}

// Block is a handle of an allocation.
type Block int32

const none = -1

// block is a piece of a segment. Blocks of a segment form a list by address.
type block struct {
	addr, size int64
	prev, next int32
	place      int32 // index in its class of the pool, if the block is free
	pool       uint8
	free       bool
}

// Allocator simulates PyTorch's allocator for one GPU in one process. It is not
// safe for concurrent use.
type Allocator struct {
	opts   Options
	blocks []block
	spare  []int32 // indices of blocks that were merged into others
	pools  [2]pool // small, large
	stats  Stats
	end    int64 // address of the next segment
	tail   [2]int32
}

// New returns an empty allocator.
func New(o Options) *Allocator {
	return &Allocator{opts: o, tail: [2]int32{none, none}}
}

// Reset empties an allocator and sets its options. It keeps the Go memory for reuse.
func (a *Allocator) Reset(o Options) {
	*a = Allocator{opts: o, tail: [2]int32{none, none}, blocks: a.blocks[:0], spare: a.spare[:0], pools: a.pools}
	for i := range a.pools {
		a.pools[i].reset()
	}
}

// Grow reserves Go memory for n blocks, so that a long simulation does not reallocate.
func (a *Allocator) Grow(n int) {
	a.blocks = slices.Grow(a.blocks, n)
	a.spare = slices.Grow(a.spare, n)
}

// Stats returns the current figures.
func (a *Allocator) Stats() Stats { return a.stats }

// Alloc reserves n bytes; 0 bytes take no memory. It fails with [ErrOutOfMemory],
// or if n is out of range.
func (a *Allocator) Alloc(n int64) (Block, error) {
	if n < 0 || n > MaxRequest {
		return none, fmt.Errorf("an allocation of %d bytes is out of range (0 to 2^50)", n)
	}
	if n == 0 {
		return none, nil
	}
	size := a.round(n)
	p := poolOf(size)
	i, ok := a.find(p, size)
	if !ok {
		var err error
		if i, err = a.segment(p, size); err != nil {
			return none, err
		}
	}
	a.split(i, size)
	a.blocks[i].free = false
	a.stats.Allocated += a.blocks[i].size
	a.stats.PeakAllocated = max(a.stats.PeakAllocated, a.stats.Allocated)
	a.highWater()
	return Block(i), nil
}

// Free returns a block to the cache. The block of a 0-byte allocation may be freed too.
func (a *Allocator) Free(b Block) {
	if b == none {
		return
	}
	i := int32(b)
	a.stats.Allocated -= a.blocks[i].size
	a.blocks[i].free = true
	if next := a.blocks[i].next; next != none && a.blocks[next].free {
		a.remove(next)
		a.join(i, next)
	}
	if prev := a.blocks[i].prev; prev != none && a.blocks[prev].free {
		a.remove(prev)
		a.join(prev, i)
		i = prev
	}
	a.insert(i)
}

// round returns the size of a request after rounding.
func (a *Allocator) round(n int64) int64 {
	if d := a.opts.RoundupDivisions; d > 1 && n > granule*d {
		floor := int64(1) << (63 - bits.LeadingZeros64(uint64(n)))
		if n == floor {
			return n
		}
		step := floor / d
		if step > 0 {
			return (n + step - 1) / step * step
		}
	}
	return roundUp(max(n, granule), granule)
}

func roundUp(n, to int64) int64 { return (n + to - 1) / to * to }

func poolOf(size int64) uint8 {
	if size <= smallRequest {
		return 0
	}
	return 1
}

// segment requests a segment for a block of this size from the driver. If memory runs
// out, it flushes the cache.
func (a *Allocator) segment(p uint8, size int64) (int32, error) {
	want := size
	switch {
	case a.opts.Async:
	case p == 0:
		want = smallSegment
	case a.opts.Expandable:
		want = roundUp(size, largeSegment)
	case size < minSegment:
		want = largeSegment
	default:
		want = roundUp(size, roundSegment)
	}
	if !a.fits(want) {
		a.flush()
		if !a.fits(want) {
			return none, ErrOutOfMemory
		}
		a.stats.Flushes++
	}
	if a.opts.Expandable && !a.opts.Async {
		return a.expand(p, want), nil
	}
	a.reserve(want)
	i := a.take(block{addr: a.end, size: want, prev: none, next: none, pool: p})
	a.end += want + 1 // segments never touch each other
	return i, nil
}

func (a *Allocator) fits(more int64) bool {
	return a.opts.Limit == 0 || a.stats.Reserved <= math.MaxInt64-more && a.stats.Reserved+more <= a.opts.Limit
}

func (a *Allocator) reserve(n int64) {
	if a.opts.Async {
		return // the pool grows by the allocated amount
	}
	a.stats.Reserved += n
	a.stats.PeakReserved = max(a.stats.PeakReserved, a.stats.Reserved)
}

// highWater updates the memory that the driver's pool keeps: the highest allocated amount
// so far, rounded up to 32 MiB.
func (a *Allocator) highWater() {
	if a.opts.Async {
		a.stats.Reserved = max(a.stats.Reserved, roundUp(a.stats.Allocated, 32<<20))
		a.stats.PeakReserved = a.stats.Reserved
	}
}
