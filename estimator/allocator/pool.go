package allocator

import (
	"cmp"
	"slices"
)

// pool holds free blocks by size, equal sizes by address.
type pool struct {
	free []key
}

type key struct {
	size, addr int64
	block      int32
}

func compare(a, b key) int {
	if a.size != b.size {
		return cmp.Compare(a.size, b.size)
	}
	return cmp.Compare(a.addr, b.addr)
}

// find takes the smallest free block of the pool that has size bytes.
func (a *Allocator) find(p uint8, size int64) (int32, bool) {
	free := a.pools[p].free
	i, _ := slices.BinarySearchFunc(free, key{size: size, addr: -1}, compare)
	if i == len(free) {
		return none, false
	}
	if limit := a.opts.MaxSplit; limit > 0 && p == 1 {
		// A block too large to be split serves no small request, and no large
		// one that would leave a segment's worth unused.
		if size < limit && free[i].size >= limit || size >= limit && free[i].size >= size+largeSegment {
			return none, false
		}
	}
	at := free[i].block
	a.pools[p].free = slices.Delete(free, i, i+1)
	return at, true
}

func (a *Allocator) insert(i int32) {
	b := a.blocks[i]
	k := key{b.size, b.addr, i}
	free := a.pools[b.pool].free
	at, _ := slices.BinarySearchFunc(free, k, compare)
	a.pools[b.pool].free = slices.Insert(free, at, k)
}

func (a *Allocator) remove(i int32) {
	b := a.blocks[i]
	free := a.pools[b.pool].free
	at, _ := slices.BinarySearchFunc(free, key{b.size, b.addr, i}, compare)
	a.pools[b.pool].free = slices.Delete(free, at, at+1)
}
