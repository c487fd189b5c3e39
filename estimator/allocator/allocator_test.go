package allocator

import (
	"errors"
	"testing"

	"pgregory.net/rapid"
)

const mib = 1 << 20

func alloc(t *testing.T, a *Allocator, n int64) Block {
	t.Helper()
	b, err := a.Alloc(n)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestSegmentsBySizeOfRequest(t *testing.T) {
	for _, c := range []struct{ request, reserved int64 }{
		{1, 2 * mib},
		{1 * mib, 2 * mib},
		{1*mib + 1, 20 * mib},
		{10*mib - 1024, 20 * mib},
		{10 * mib, 10 * mib},
		{11*mib + 1, 12 * mib},
		{0, 0},
	} {
		a := New(Options{})
		alloc(t, a, c.request)
		if got := a.Stats().Reserved; got != c.reserved {
			t.Errorf("%d bytes reserve %d, want %d", c.request, got, c.reserved)
		}
	}
}

func TestFreedBlocksMergeAndAreUsedAgain(t *testing.T) {
	a := New(Options{})
	first, second := alloc(t, a, 8*mib), alloc(t, a, 8*mib) // one segment of 20 MiB
	a.Free(first)
	a.Free(second)
	alloc(t, a, 19*mib)
	if got := a.Stats().Reserved; got != 20*mib {
		t.Errorf("reserved %d MiB, want 20: the halves did not merge", got/mib)
	}
}

func TestLargeBlocksAreNotSplitForAMebibyte(t *testing.T) {
	a := New(Options{})
	a.Free(alloc(t, a, 30*mib))
	alloc(t, a, 29*mib) // the remaining 1 MiB stays part of the block
	if s := a.Stats(); s.Allocated != 30*mib {
		t.Errorf("allocated %d MiB, want 30", s.Allocated/mib)
	}
}

func TestTheSmallestBlockThatFitsIsTaken(t *testing.T) {
	a := New(Options{})
	large, small := alloc(t, a, 100*mib), alloc(t, a, 50*mib)
	a.Free(large)
	a.Free(small)
	alloc(t, a, 40*mib)
	alloc(t, a, 100*mib)
	if got := a.Stats().Reserved; got != 150*mib {
		t.Errorf("reserved %d MiB, want 150: the larger block was cut", got/mib)
	}
}

func TestOutOfMemoryOnlyAfterTheCacheIsFlushed(t *testing.T) {
	a := New(Options{Limit: 100 * mib})
	a.Free(alloc(t, a, 60*mib))
	alloc(t, a, 80*mib) // fits only after the 60 went back to the driver
	if s := a.Stats(); s.Flushes != 1 || s.Reserved != 80*mib || s.PeakReserved != 80*mib {
		t.Errorf("%+v, want one flush, 80 MiB reserved", s)
	}
	if _, err := a.Alloc(30 * mib); !errors.Is(err, ErrOutOfMemory) {
		t.Errorf("30 MiB more: %v, want out of memory", err)
	}
}

func TestExpandableSegmentsGrow(t *testing.T) {
	a := New(Options{Expandable: true})
	b := alloc(t, a, 30*mib)
	a.Free(b)
	alloc(t, a, 90*mib)
	if got := a.Stats().Reserved; got >= 30*mib+90*mib || got < 90*mib {
		t.Errorf("reserved %d MiB, want the freed 30 to be grown, not left", got/mib)
	}
}

func TestAsyncPoolKeepsItsHighWater(t *testing.T) {
	a := New(Options{Async: true})
	for range 10 {
		a.Free(alloc(t, a, 33*mib))
	}
	if got := a.Stats().Reserved; got != 64*mib {
		t.Errorf("reserved %d MiB, want 64", got/mib)
	}
}

func TestRoundupDivisions(t *testing.T) {
	for _, c := range []struct{ request, takes int64 }{{5000, 5120}, {4096, 4096}, {1200, 1536}} {
		a := New(Options{RoundupDivisions: 4})
		alloc(t, a, c.request)
		if got := a.Stats().Allocated; got != c.takes {
			t.Errorf("%d bytes take %d, want %d", c.request, got, c.takes)
		}
	}
}

// TestBooksBalance: after any allocations and frees the statistics equal a simple count, and no
// blocks overlap. After all blocks are freed, each segment is one block.
func TestBooksBalance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := Options{
			Expandable: rapid.Bool().Draw(t, "expandable"),
			MaxSplit:   rapid.SampledFrom([]int64{0, 32 * mib}).Draw(t, "max split"),
			Limit:      rapid.SampledFrom([]int64{0, 256 * mib}).Draw(t, "limit"),
		}
		a := New(o)
		var live []Block
		for range rapid.IntRange(1, 200).Draw(t, "operations") {
			if len(live) > 0 && rapid.Bool().Draw(t, "free") {
				i := rapid.IntRange(0, len(live)-1).Draw(t, "which")
				a.Free(live[i])
				live = append(live[:i], live[i+1:]...)
				continue
			}
			b, err := a.Alloc(rapid.Int64Range(1, 40*mib).Draw(t, "bytes"))
			if errors.Is(err, ErrOutOfMemory) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			live = append(live, b)
		}
		var sum int64
		type span struct{ from, to int64 }
		var spans []span
		for _, b := range live {
			k := a.blocks[b]
			sum += k.size
			for _, s := range spans {
				if k.addr < s.to && s.from < k.addr+k.size {
					t.Fatalf("blocks overlap at %d", k.addr)
				}
			}
			spans = append(spans, span{k.addr, k.addr + k.size})
		}
		s := a.Stats()
		if s.Allocated != sum || s.Allocated > s.Reserved || o.Limit > 0 && s.PeakReserved > o.Limit {
			t.Fatalf("%+v, %d bytes live", s, sum)
		}
		for _, b := range live {
			a.Free(b)
		}
		a.flush()
		if s := a.Stats(); s.Allocated != 0 || s.Reserved != 0 {
			t.Fatalf("after freeing all: %+v", s)
		}
	})
}
